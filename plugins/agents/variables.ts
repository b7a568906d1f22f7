import type { AgentVariables } from './contract.ts'

type Read = Parameters<AgentVariables['add']>[0]

/** Of several that have a variable of one name the last one counts. */
export function createVariables(): AgentVariables {
  const readers = new Set<Read>()
  return {
    add(read) {
      readers.add(read)
      return {
        [Symbol.dispose]() {
          readers.delete(read)
        },
      }
    },
    async of(agentId) {
      const found = await Promise.all([...readers].map((read) => read(agentId)))
      return Object.fromEntries(found.flatMap((each) => Object.entries(each)))
    },
  }
}
