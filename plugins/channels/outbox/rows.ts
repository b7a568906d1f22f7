import { v7 } from 'uuid'
import { omitUndefined } from 'svc/sdk'
import { partId } from './message.ts'
import type { Drafts, OutgoingMessage, Payload } from './message.ts'
import type * as RenderModule from './render.ts'
import type { OutboxRow } from './schema.ts'

/** Shown in place of a message that the platform cannot remove. */
const WITHDRAWN = 'See above.'
/** Loaded by the first message. Kept: an `import()` of what is loaded already resolves its name again. */
let render: Promise<typeof RenderModule> | undefined

/** A row with nothing in it yet, which waits to be sent. */
export function emptyRow(account: OutgoingMessage['account'], to: OutgoingMessage['to'], at: string): OutboxRow {
  return {
    id: '',
    message_id: '',
    channel: account.channel,
    account: account.id,
    chat: to.chatId,
    thread: to.threadId ?? '',
    seq: v7(),
    part: 0,
    parts: 1,
    kind: 'answer',
    payload: { text: '', plainText: '' },
    state: 'pending',
    attempts: 0,
    uncertain: 0,
    next_at: null,
    platform_id: null,
    error: null,
    agent_id: '',
    turn_id: '',
    created_at: at,
    settled_at: null,
  }
}

/** The rows of a result, one for each message of the platform. */
export async function toRows(
  message: OutgoingMessage,
  at: string,
  maxFormattedChars: number,
): Promise<readonly OutboxRow[]> {
  const { id, kind, account, capabilities, to, replyTo, buttons, attachments = [], drafts } = message
  if (capabilities.isPublic && ['notice', 'error', 'approval'].includes(kind)) return []
  const takesFiles = capabilities.attachments?.outbound === true
  const missing = takesFiles ? [] : attachments.map(({ name }) => `[The file ${name} was not sent: no files here.]`)
  const text = [message.text, ...missing].filter((each) => each !== '').join('\n\n')
  // Reading Markdown is the largest part of this plugin, and most daemons have no channel.
  const { renderMessages } = await (render ??= import('./render.ts'))
  const rendered = renderMessages(text, capabilities, account.settings, maxFormattedChars)
  const files = takesFiles ? attachments : []
  const messages = rendered.length === 0 && files.length > 0 ? [{ text: '', plainText: '' }] : rendered
  const common = emptyRow(account, to, at)
  const rows = messages.map((each, part): OutboxRow => {
    const isLast = part === messages.length - 1
    const payload: Payload = {
      ...each,
      ...omitUndefined({
        replyTo: part === 0 ? replyTo : undefined,
        replyContext: to.replyContext,
        buttons: isLast ? buttons : undefined,
        attachments: isLast && files.length > 0 ? files : undefined,
      }),
    }
    return {
      ...common,
      id: partId(id, part),
      message_id: id,
      part,
      parts: messages.length,
      kind,
      payload,
      platform_id: drafts?.get(part) ?? null,
      // The draft was an attempt of which it is not known whether it arrived.
      attempts: drafts?.get(part) === null ? 1 : 0,
      uncertain: drafts?.get(part) === null ? 1 : 0,
      agent_id: message.agentId ?? '',
      turn_id: message.turnId ?? '',
    }
  })
  return [...rows, ...withdrawn({ ...common, message_id: id, kind, parts: rows.length }, drafts)]
}
/** Rows that remove what was shown beyond the final text. They are no results of a turn. */
function withdrawn(common: OutboxRow, drafts: Drafts = new Map()): readonly OutboxRow[] {
  const payload: Payload = { text: WITHDRAWN, plainText: WITHDRAWN, isWithdrawn: true }
  return [...drafts].flatMap(([part, platformId]) =>
    part < common.parts || platformId === null
      ? []
      : [{ ...common, id: partId(common.message_id, part), part, payload, platform_id: platformId }],
  )
}
