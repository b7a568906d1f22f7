import { omitUndefined } from 'svc/sdk'
import type { Block, Message } from './contract.ts'
import type { MessageView } from './schema.ts'

const roles = { system: 'System', user: 'User', assistant: 'Assistant' } as const
type Result = Extract<Block, { type: 'result' }>

/** Messages as the interface shows them (2.2): results of tools are folded into the message that called. */
export function toView(messages: readonly Message[]): MessageView[] {
  const views: MessageView[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') continue
    const view: MessageView = {
      id: message.id,
      role: roles[message.role],
      content: text(message.blocks),
      created_at: message.createdAt,
      turn_id: message.turnId,
      ...omitUndefined({ mark: message.mark }),
      ...(message.failure === undefined ? {} : { failed: true as const, error: message.failure }),
    }
    const thinking = reasoning(message.blocks)
    if (thinking !== '') view.thinking = thinking
    const tools = toolViews(message.blocks, resultsAfter(messages, index))
    if (tools.length > 0) view.tools = tools
    const images = message.blocks.filter((block) => block.type === 'image')
    if (images.length > 0)
      view.images = images.map(({ mime, fileId, filename }, n) => ({
        ...omitUndefined({ file_id: fileId }),
        filename: filename ?? `image-${n + 1}.${mime.replace(/^image\//, '')}`,
        mime,
      }))
    views.push(view)
  }
  return views
}

function text(blocks: readonly Block[]): string {
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n')
}
function reasoning(blocks: readonly Block[]): string {
  return blocks.flatMap((block) => (block.type === 'reasoning' ? [block.text] : [])).join('\n\n')
}
function resultsAfter(messages: readonly Message[], index: number): ReadonlyMap<string, Result> {
  const results = new Map<string, Result>()
  for (let at = index + 1; messages[at]?.role === 'tool'; at++) {
    for (const block of messages[at]?.blocks ?? [])
      if (block.type === 'result' && !results.has(block.callId)) results.set(block.callId, block)
  }
  return results
}
function toolViews(blocks: readonly Block[], results: ReadonlyMap<string, Result>): NonNullable<MessageView['tools']> {
  return blocks.flatMap((block) => {
    if (block.type !== 'call') return []
    const result = results.get(block.id)
    return [
      {
        id: block.id,
        name: block.tool,
        input: block.args,
        running: false,
        expanded: false,
        result: result?.text ?? null,
        is_error: result?.failed ?? false,
      },
    ]
  })
}
