import * as v from 'valibot'

/** Only the fields that are read. Source: https://github.com/nostr-protocol/nips (looked up in November 2026) */
const Hex32 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))
const Tags = v.pipe(v.array(v.array(v.string())), v.maxLength(2000))

/** Seconds, as everywhere in Nostr. */
const Time = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

/** The direct messages of NIP-04 (4) and NIP-17: seal (13), text (14), file (15), wrap (1059). */
export const KIND = {
  legacyMessage: 4,
  seal: 13,
  message: 14,
  file: 15,
  wrap: 1059,
  messageRelays: 10_050,
  auth: 22_242,
} as const

/** An event without a signature, which NIP-59 calls a rumor. */
export const Rumor = v.object({
  id: Hex32,
  pubkey: Hex32,
  created_at: Time,
  kind: v.number(),
  tags: Tags,
  content: v.pipe(v.string(), v.maxLength(150_000)),
})
export type Rumor = v.InferOutput<typeof Rumor>

export const Event = v.object({ ...Rumor.entries, sig: v.pipe(v.string(), v.regex(/^[0-9a-f]{128}$/)) })
export type Event = v.InferOutput<typeof Event>

const Words = v.optional(v.string(), '')
/** What a relay sends (NIP-01 and NIP-42). Events are read one by one. */
export const Frame = v.union([
  v.looseTuple([v.literal('EVENT'), v.string(), v.unknown()]),
  v.looseTuple([v.literal('OK'), v.string(), v.boolean(), Words]),
  v.looseTuple([v.literal('EOSE'), v.string()]),
  v.looseTuple([v.literal('CLOSED'), v.string(), Words]),
  v.looseTuple([v.literal('NOTICE'), v.string()]),
  v.looseTuple([v.literal('AUTH'), v.string()]),
])
export type Frame = v.InferOutput<typeof Frame>

/** What events are asked for. */
export interface Filter {
  readonly kinds: readonly number[]
  readonly authors?: readonly string[]
  readonly '#p'?: readonly string[]
  readonly since?: number
  readonly until?: number
  readonly limit?: number
}

/** The first value of the first tag with this name. */
export function tagOf({ tags }: Pick<Rumor, 'tags'>, name: string): string | undefined {
  return tags.find((tag) => tag[0] === name)?.[1]
}
/** The first values of all tags with this name. */
export function tagsOf({ tags }: Pick<Rumor, 'tags'>, name: string): readonly string[] {
  return tags.flatMap(([key, value]) => (key === name && value !== undefined ? [value] : []))
}
