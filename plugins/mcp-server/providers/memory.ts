import type { Agents } from '../../agents/contract.ts'
import type { KeyValue } from '../../kv/contract.ts'
import type { McpCompletion, McpResourceProvider } from '../contract.ts'
import { jsonContents, partsOf, uriOf } from './uri.ts'

const LIST = 'svc://memory/{agent}'
const KEY = 'svc://memory/{agent}/{key}'

/** `svc://memory/{agent}` and `svc://memory/{agent}/{key}`: what an agent keeps. */
export function memoryResources(agents: Agents, kv: () => KeyValue | undefined): McpResourceProvider {
  return {
    async list() {
      return (await agents.list()).map(({ name }) => ({
        uri: memoryUri(name),
        name: `memory of ${name}`,
        title: `Memory of ${name}`,
        description: `The keys and values that the agent ${name} keeps.`,
        mimeType: 'application/json',
      }))
    },
    templates: [
      {
        uriTemplate: LIST,
        name: 'memory',
        title: 'Memory',
        description: 'All that an agent keeps.',
        mimeType: 'application/json',
      },
      {
        uriTemplate: KEY,
        name: 'memory key',
        title: 'Value in memory',
        description: 'What an agent keeps under a key.',
        mimeType: 'application/json',
      },
    ],
    async read(uri) {
      const [area, name, key, more] = partsOf(uri) ?? []
      const store = kv()
      if (area !== 'memory' || !name || more !== undefined || !store) return undefined
      const { id } = await agents.resolve(name)
      if (key === undefined) {
        const pairs = await store.list(id)
        return jsonContents(uri, Object.fromEntries(pairs.map((pair) => [pair.key, pair.value])))
      }
      const found = await store.find(id, key)
      return found && jsonContents(uri, found.value)
    },
    async complete(_template, { argument, known }: McpCompletion) {
      if (argument.name === 'agent') return (await agents.list()).map(({ name }) => name)
      const agent = known['agent'] === undefined ? undefined : await agents.findByName(known['agent'])
      return agent ? ((await kv()?.list(agent.id)) ?? []).map(({ key }) => key) : []
    },
  }
}
export const memoryUri = (agent: string, key?: string): string =>
  key === undefined ? uriOf('memory', agent) : uriOf('memory', agent, key)
