import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Agent, Agents } from './contract.ts'

/** Agents one answer shows at most. */
const shown = 100

export function agentTools(agents: Pick<Agents, 'list'>): readonly AnyTool[] {
  const list = defineTool({
    name: 'agent_list',
    risk: 'read',
    description: 'The agents of this service: id, name, state and description of each. Answers JSON.',
    input: v.object({}),
    async run(_, { agentId }) {
      return show(await agents.list(), agentId)
    },
  })
  const find = defineTool({
    name: 'agent_find',
    risk: 'read',
    description: 'Find agents by a word in their name, description or tags. Answers JSON.',
    input: v.object({ query: v.pipe(v.string(), v.minLength(1), v.maxLength(256)) }),
    async run({ query }, { agentId }) {
      const words = query
        .toLowerCase()
        .split(/\s+/)
        .filter((word) => word !== '')
      return show(
        (await agents.list()).filter(({ name, manifest }) => {
          const text = [name, manifest.description, ...manifest.tags].join('\n').toLowerCase()
          return words.every((word) => text.includes(word))
        }),
        agentId,
      )
    },
  })
  return [list, find]
}

function show(found: readonly Agent[], self: string): string {
  return JSON.stringify({
    agents: found.slice(0, shown).map(({ id, name, state, manifest }) => ({
      id,
      name,
      state,
      description: manifest.description,
      tags: manifest.tags,
      ...(id === self ? { you: true } : {}),
    })),
    total: found.length,
  })
}
