import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { pollInBackground } from 'svc/channels'
import type { Background } from 'svc/channels'
import type { BotApi, Link } from './api.ts'
import { decodeUpdate } from './decode.ts'
import type { Bot } from './decode.ts'
import type { MigratedChats } from './migrated-chats.ts'
import { Done, Update, UPDATE_KINDS, Updates } from './wire.ts'

const OFFSET = 'offset'
const LIMIT = 100

/** What deals with updates. */
export interface Receiver {
  readonly link: Link
  readonly api: BotApi
  readonly bot: Bot
  readonly chats: MigratedChats
}

/** Receives updates by long polling. Asking for the next ones acknowledges those before: they are durable by then. */
export async function startPolling(receiver: Receiver): Promise<Background> {
  const { link, api } = receiver
  let offset = Number((await link.state.read(OFFSET)) ?? 0)
  // Telegram answers polls only while no webhook is set. Updates that wait are kept.
  await api.call('deleteWebhook', { json: { drop_pending_updates: false } }, Done)
  return pollInBackground(link, async (signal) => {
    const updates = await fetchUpdates(link, api, offset, signal)
    for (const raw of updates) {
      await receiveUpdate(receiver, raw)
      offset = raw.update_id + 1
    }
    if (updates.length > 0) await link.state.write(OFFSET, String(offset))
    return updates.length > 0
  })
}

/** Receives one update. One that cannot be read is left out, or it would come again for ever. */
export async function receiveUpdate({ link, api, bot, chats }: Receiver, raw: unknown): Promise<void> {
  const parsed = v.safeParse(Update, raw)
  if (!parsed.success) {
    link.log.warn('telegram: an update in an unknown form was left out', { issue: parsed.issues[0].message })
    return
  }
  const { chat, migrate_from_chat_id: first } = parsed.output.message ?? {}
  if (chat && first !== undefined) await chats.note(String(first), String(chat.id))
  const message = decodeUpdate(parsed.output, bot)
  if (message) await link.receive({ ...message, chat: { ...message.chat, id: await chats.firstId(message.chat.id) } })
  const press = parsed.output.callback_query
  if (press) await endSpinner(link, api, press.id)
}

/** The pressed button shows a spinner until it is answered. */
async function endSpinner(link: Link, api: BotApi, id: string): Promise<void> {
  try {
    await api.call('answerCallbackQuery', { json: { callback_query_id: id } }, Done)
  } catch (error) {
    // Too old to be answered, or the connection is lost: the message itself is received.
    if (!(error instanceof UpstreamFailure)) throw error
    link.log.debug('telegram: a pressed button was not answered', { reason: error.message })
  }
}

async function fetchUpdates(link: Link, api: BotApi, offset: number, signal: AbortSignal) {
  const { poll_timeout_secs: timeout } = link.config
  const json = { timeout, limit: LIMIT, allowed_updates: UPDATE_KINDS, ...(offset > 0 && { offset }) }
  const { result } = await api.call('getUpdates', { json, signal, timeoutMs: (timeout + 10) * 1000 }, Updates)
  return result
}
