import * as v from 'valibot'
import { line } from 'svc/sdk'

const AVATAR_CHARS = 65_536
const ADDRESS_CHARS = 2048
export const DATA_URL = /^data:(image\/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/]+=*)$/
/** A page shows the avatar, so other schemes are refused. SVG is refused because it can hold scripts. */
const avatar = v.pipe(
  line(AVATAR_CHARS),
  v.check(
    (url) => (/^https?:\/\/[^\s]+$/i.test(url) ? url.length <= ADDRESS_CHARS && URL.canParse(url) : DATA_URL.test(url)),
    'must be an http(s) address or a data URI of an image',
  ),
)
/** Text of several lines. */
const paragraph = (limit: number) =>
  v.pipe(
    v.string(),
    v.maxLength(limit, `at most ${limit} characters`),
    v.check(
      (text) => text.isWellFormed() && !/[^\P{Cc}\t\r\n]/u.test(text),
      'must be well-formed Unicode without control characters other than tabs and line breaks',
    ),
  )

export const Identity = v.object({
  emoji: v.optional(line(32)),
  avatar_url: v.optional(avatar),
  color: v.optional(v.pipe(v.string(), v.regex(/^#[0-9a-fA-F]{3,8}$/, 'must be # and 3 to 8 hexadecimal digits'))),
  archetype: v.optional(line(256)),
  vibe: v.optional(paragraph(4096)),
  greeting_style: v.optional(line(256)),
})
export type Identity = v.InferOutput<typeof Identity>

const stored = v.optional(v.string())
/** The column of the database. Rows of earlier versions were checked by other rules and stay readable. */
export const StoredIdentity = v.object({
  emoji: stored,
  avatar_url: stored,
  color: stored,
  archetype: stored,
  vibe: stored,
  greeting_style: stored,
}) satisfies v.GenericSchema<unknown, Identity>

const text = v.optional(v.nullable(v.string()))
/** The fields of a change: `null` clears one. `avatar` and `persona` are the names in the interface. */
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
