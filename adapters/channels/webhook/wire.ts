import * as v from 'valibot'

const shortText = v.pipe(v.string(), v.maxLength(256))
const idText = v.pipe(v.string(), v.minLength(1), v.maxLength(256))

/** What the other side posts. Numbers serve as ids as well as texts. */
export const InboundBody = v.object({
  sender_id: v.pipe(v.union([idText, v.pipe(v.number(), v.safeInteger())]), v.transform(String)),
  sender_name: v.nullish(shortText),
  message: v.nullish(v.string(), ''),
  /** The conversation; that with the sender when it is absent. */
  chat_id: v.nullish(idText),
  thread_id: v.nullish(idText),
  is_group: v.nullish(v.boolean(), false),
  /** Whether the bot is meant; only groups ask. */
  mentions_bot: v.nullish(v.boolean(), true),
  reply_to: v.nullish(idText),
  metadata: v.nullish(v.object({ message_id: v.nullish(idText) })),
})
export type InboundBody = v.InferOutput<typeof InboundBody>

/** What is posted to the other side. */
export interface OutboundBody {
  readonly message_id: string
  readonly sender_id: string
  readonly sender_name: string
  readonly recipient_id: string
  readonly recipient_name: string
  readonly message: string
  readonly thread_id?: string
  readonly reply_to?: string
  readonly timestamp: string
}
