import type * as v from 'valibot'
import type { InboxRow, InboxState } from '../inbox/schema.ts'
import type { OutboxRow, OutboxState } from '../outbox/schema.ts'
import type { HandlerDeps } from './handlers.ts'
import type { Received, Sent } from './message-routes.ts'

const PREVIEW_CHARS = 200
interface ListInput<State> {
  readonly params: { readonly name: string }
  readonly query: { readonly state: State; readonly limit: number }
}
interface ChangeInput {
  readonly params: { readonly name: string; readonly id: string }
}

/** The name of a channel, also of one whose plugin was removed. Throws `channel_not_found`. */
export async function storedName(
  { channelName, hasRows }: Pick<HandlerDeps, 'channelName' | 'hasRows'>,
  given: string,
): Promise<string> {
  return (await hasRows(given)) ? given : channelName(given)
}

/** What the routes of the inbox and the outbox do. */
export function messageHandlers(deps: Pick<HandlerDeps, 'messaging' | 'channelName' | 'hasRows'>) {
  const { messaging } = deps
  const { inbox, outbox } = messaging
  return {
    async listOutbox({ params, query }: ListInput<OutboxState>) {
      const rows = await outbox.list({ ...query, channel: await storedName(deps, params.name) })
      return { messages: rows.map(toSent), total: rows.length }
    },
    async listInbox({ params, query }: ListInput<InboxState>) {
      const rows = await inbox.list({ ...query, channel: await storedName(deps, params.name) })
      return { messages: rows.map(toReceived), total: rows.length }
    },
    async changeMessage({ params }: ChangeInput, box: 'inbox' | 'outbox', verb: 'retry' | 'discard') {
      await (box === 'inbox' ? inbox : outbox)[verb](await storedName(deps, params.name), params.id)
      return { status: verb === 'retry' ? ('pending' as const) : ('discarded' as const) }
    },
  }
}

function toSent(row: OutboxRow): v.InferOutput<typeof Sent> {
  return {
    id: row.id,
    account_id: row.account,
    chat_id: row.chat,
    kind: row.kind,
    state: row.state,
    text: row.payload.plainText.slice(0, PREVIEW_CHARS),
    attempts: row.attempts,
    error: row.error,
    next_at: row.next_at,
    created_at: row.created_at,
    settled_at: row.settled_at,
  }
}
function toReceived(row: InboxRow): v.InferOutput<typeof Received> {
  return {
    id: row.id,
    account_id: row.account,
    message_id: row.message_id.split('\n', 1).join(''),
    state: row.state,
    text: row.message.text.slice(0, PREVIEW_CHARS),
    attempts: row.attempts,
    reason: row.reason,
    received_at: row.received_at,
  }
}
