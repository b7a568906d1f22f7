import { omitUndefined } from 'svc/sdk'
import type { Destination, SentMessage } from 'svc/channels'
import type { TurnEvent } from '../../chat/contract.ts'
import type { Account } from '../accounts/account.ts'
import { untilAnswered } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { OpenConnection } from '../connections/connections.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { partId } from '../outbox/message.ts'
import type { Drafts } from '../outbox/message.ts'
import { renderMessages } from '../outbox/render.ts'
import { classifyFailure } from '../outbox/retry.ts'
import { StreamedMessage } from '../text/index.ts'

export interface AnswerStreamOptions {
  readonly outbox: Pick<Outbox, 'draft' | 'dropDraft'>
  readonly clock: Clock
  readonly open: OpenConnection
  readonly account: Account
  readonly messageId: string
  readonly agentId: string
  readonly turnId: string
  readonly to: Destination
  readonly replyTo: string | undefined
  readonly maxFormattedChars: number
  readonly failed: (error: unknown) => void
}

/**
 * Shows an answer while it is written. Each message that it sends is a draft in the outbox, which the final text
 * replaces by an edit: whatever happens in between, the answer is shown once. Returns the drafts.
 */
export async function streamAnswer(events: AsyncIterable<TurnEvent>, options: AnswerStreamOptions): Promise<Drafts> {
  const { outbox, clock, open, account, messageId, to, maxFormattedChars, failed } = options
  const { connection, adapter, signal } = open
  const { capabilities } = adapter
  const drafts = new Map<number, string | null>()
  const shown = new StreamedMessage({
    minIntervalMs: capabilities.edit?.minIntervalMs ?? 1_000,
    render: (markdown) => renderMessages(markdown, capabilities, account.settings, maxFormattedChars),
    async send(message, part): Promise<SentMessage> {
      const id = partId(messageId, part)
      const draft = { ...options, id, part }
      const isDraft = await outbox.draft(draft)
      // The database may have taken its time: by now another daemon may be connected, and have answered.
      if (isDraft && signal.aborted) await outbox.dropDraft(draft)
      if (!isDraft || signal.aborted) throw new Error('another daemon answers this')
      drafts.set(part, null)
      const first = part === 0 && capabilities.replies === true ? options.replyTo : undefined
      try {
        const sent = await connection.send({
          id,
          to,
          ...message,
          attachments: [],
          ...omitUndefined({ replyTo: first }),
        })
        drafts.set(part, sent.id)
        // Without it the final text could not replace the draft.
        await untilAnswered(() => outbox.draft(draft, sent.id), signal)
        return sent
      } catch (error) {
        if (drafts.get(part) !== null || classifyFailure(error).isUncertain) throw error
        drafts.delete(part)
        await outbox.dropDraft(draft)
        throw error
      }
    },
    async edit(sent, message, part) {
      await connection.edit?.(sent, { id: partId(messageId, part), to, ...message, attachments: [] })
    },
    sleep: (ms, ended) => sleep(clock, ms, AbortSignal.any([ended, signal])),
    failed,
  })
  let text = ''
  try {
    for await (const event of events) {
      if (event.type !== 'text') continue
      text += event.delta
      shown.update(text)
    }
  } finally {
    await shown.stop()
  }
  return drafts
}

function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Error('the wait was ended'))
    const end = (): void => {
      cancel()
      reject(new Error('the wait was ended'))
    }
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', end)
      resolve()
    })
    signal.addEventListener('abort', end, { once: true })
  })
}
