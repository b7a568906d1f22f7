import * as v from 'valibot'
import { Refusal } from 'svc/sdk'

const line = (limit: number) =>
  v.pipe(
    v.string(),
    v.maxLength(limit, `at most ${limit} characters`),
    v.check((text) => text.isWellFormed() && !text.includes('\0'), 'must be well-formed Unicode without NUL'),
  )
const AVATAR_CHARS = 65_536
/** A page shows it: no other scheme may come through. SVG can hold scripts. */
const avatar = v.pipe(
  line(AVATAR_CHARS),
  v.check(
    (url) =>
      /^https?:\/\/[^\s]+$/i.test(url)
        ? url.length <= 2048 && URL.canParse(url)
        : /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$/.test(url),
    'must be an http(s) address or a data URI of an image',
  ),
)

export const Identity = v.object({
  emoji: v.optional(line(32)),
  avatar_url: v.optional(avatar),
  color: v.optional(v.pipe(v.string(), v.regex(/^#[0-9a-fA-F]{3,8}$/, 'must be # and 3 to 8 hexadecimal digits'))),
  archetype: v.optional(line(256)),
  vibe: v.optional(line(4096)),
  greeting_style: v.optional(line(256)),
})
export type Identity = v.InferOutput<typeof Identity>

const text = v.optional(v.nullable(v.string()))
/** What a change may hold: `null` clears. `avatar` and `persona` are the names of the interface. */
export const identityFields = {
  emoji: text,
  avatar_url: text,
  color: text,
  archetype: text,
  vibe: text,
  greeting_style: text,
  avatar: text,
  persona: text,
}
const IdentityChange = v.object(identityFields)
export type IdentityChange = v.InferOutput<typeof IdentityChange>

/** Only the fields of a body that concern the identity; `undefined` when there are none. */
export function identityChange(body: IdentityChange): IdentityChange | undefined {
  const given = Object.entries(body).filter(
    ([name, value]) => Object.hasOwn(identityFields, name) && value !== undefined,
  )
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

/** Throws `invalid_request` for a value that is none and for two names of one field that disagree. */
export function changeIdentity(old: Identity, { avatar, persona, ...change }: IdentityChange): Identity {
  // An avatar without an address is a sign to show.
  const shown =
    avatar === undefined || avatar === null || /:|\/\//.test(avatar) ? { avatar_url: avatar } : { emoji: avatar }
  const named = merge(merge(change, shown, 'avatar'), { vibe: persona }, 'persona')
  const next = Object.fromEntries(
    Object.entries({ ...old, ...named }).filter(([, value]) => value !== null && value !== undefined),
  )
  const result = v.safeParse(Identity, next)
  if (result.success) return result.output
  const issue = result.issues[0]
  throw new Refusal('invalid_request', `${v.getDotPath(issue) ?? 'identity'}: ${issue.message}`)
}

function merge(change: IdentityChange, other: IdentityChange, name: string): IdentityChange {
  for (const [key, value] of Object.entries(other)) {
    if (value === undefined) continue
    const already = Object.entries(change).find(([field]) => field === key)?.[1]
    if (already !== undefined && already !== value)
      throw new Refusal('invalid_request', `${name}: says something else than ${key}`)
    change = { ...change, [key]: value }
  }
  return change
}
