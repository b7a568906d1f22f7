import type { Agents } from '../../agents/contract.ts'
import type { Block, Message, Sessions } from '../../sessions/contract.ts'
import type { McpResourceProvider } from '../contract.ts'
import { jsonContents, partsOf, uriOf } from './uri.ts'

const TEMPLATE = 'svc://sessions/{session}'

/** `svc://sessions/{session}`: a conversation, the newest messages last. */
export function sessionResources(agents: Agents, sessions: Sessions, maxMessages: number): McpResourceProvider {
  return {
    async list() {
      const names = new Map((await agents.list()).map(({ id, name }) => [id, name]))
      return (await sessions.list()).map(({ id, agentId, title, messageCount }) => ({
        uri: sessionUri(id),
        name: id,
        title: title === '' ? `Conversation of ${names.get(agentId) ?? agentId}` : title,
        description: `${messageCount} messages with the agent ${names.get(agentId) ?? agentId}`,
        mimeType: 'application/json',
      }))
    },
    templates: [
      {
        uriTemplate: TEMPLATE,
        name: 'session',
        title: 'Conversation',
        description: 'A conversation of an agent, by the id of its session.',
        mimeType: 'application/json',
      },
    ],
    async read(uri) {
      const [area, id, more] = partsOf(uri) ?? []
      if (area !== 'sessions' || !id || more !== undefined) return undefined
      const session = await sessions.find(id)
      if (!session) return undefined
      const messages = await sessions.page(id, { limit: maxMessages })
      return jsonContents(uri, {
        id,
        agent_id: session.agentId,
        title: session.title,
        message_count: session.messageCount,
        messages: messages.map(toView),
      })
    },
    complete: async () => (await sessions.list()).map(({ id }) => id),
  }
}
function toView({ role, blocks, createdAt, turnId }: Message) {
  return { role, text: blocks.map(textOf).filter(Boolean).join('\n\n'), created_at: createdAt, turn_id: turnId }
}
function textOf(block: Block): string {
  if (block.type === 'text') return block.text
  if (block.type === 'call') return `[calls ${block.tool}]`
  if (block.type === 'result') return `[${block.tool}] ${block.text}`
  return ''
}
export const sessionUri = (id: string): string => uriOf('sessions', id)
