import type { Agent, Agents } from '../../agents/contract.ts'
import type { McpResourceProvider } from '../contract.ts'
import { jsonContents, partsOf, uriOf } from './uri.ts'

export const AGENTS_URI = 'svc://agents'

/** `svc://agents` and `svc://agents/{agent}`. */
export function agentResources(agents: Agents): McpResourceProvider {
  return {
    list: () => [
      { uri: AGENTS_URI, name: 'agents', title: 'Agents', description: 'All agents.', mimeType: 'application/json' },
    ],
    templates: [
      {
        uriTemplate: `${AGENTS_URI}/{agent}`,
        name: 'agent',
        title: 'Agent',
        description: 'One agent, by name or id.',
        mimeType: 'application/json',
      },
    ],
    async read(uri) {
      if (uri === AGENTS_URI) return jsonContents(uri, (await agents.list()).map(toView))
      const [area, name, more] = partsOf(uri) ?? []
      if (area !== 'agents' || !name || more !== undefined) return undefined
      return jsonContents(uri, toView(await agents.resolve(name)))
    },
    complete: async () => (await agents.list()).map(({ name }) => name),
  }
}
function toView({ id, name, state, mode, permission, createdAt, sessionId, manifest }: Agent) {
  return {
    id,
    name,
    description: manifest.description,
    state,
    mode,
    permission,
    model: `${manifest.model.provider}/${manifest.model.model}`,
    session_id: sessionId,
    created_at: createdAt,
  }
}
export const agentUri = (name: string): string => uriOf('agents', name)
