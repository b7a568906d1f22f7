import * as v from 'valibot'

/**
 * Only the fields that are read. Sources: https://gateway.threema.ch/en/developer/api and /e2e, and
 * https://github.com/threema-ch/threema-msgapi-sdk-python (looked up in November 2026)
 */
export const ThreemaId = v.pipe(v.string(), v.length(8), v.regex(/^[*A-Z0-9][A-Z0-9]{7}$/))
const hex = (length: number) => v.pipe(v.string(), v.regex(new RegExp(`^[0-9a-f]{${length}}$`, 'i')))

/** What Threema sends to the webhook, after its `mac` was checked. */
export const Callback = v.object({
  from: ThreemaId,
  to: ThreemaId,
  messageId: hex(16),
  date: v.pipe(v.string(), v.regex(/^\d{1,16}$/)),
  nonce: hex(48),
  box: v.pipe(v.string(), v.regex(/^(?:[0-9a-f]{2}){1,8192}$/i)),
  nickname: v.optional(v.pipe(v.string(), v.maxLength(1000))),
})
export type Callback = v.InferOutput<typeof Callback>

/** The kinds of messages that are read: the first byte of what is in the box. */
export const TYPE = { text: 0x01, location: 0x10, file: 0x17 } as const

/** A file: its content is at the server, encrypted with the key. */
export const File = v.object({
  b: hex(32),
  k: hex(64),
  m: v.optional(v.string(), 'application/octet-stream'),
  n: v.optional(v.string()),
  s: v.optional(v.number()),
  d: v.optional(v.string()),
})
export type File = v.InferOutput<typeof File>

/** What is in a box, without its padding. */
export interface Content {
  readonly type: number
  readonly data: Uint8Array
}
