import { mediaTypeOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import * as v from 'valibot'
import { DATA_URL, Identity } from './identity.ts'
import type { IdentityChange } from './identity.ts'

/**
 * The identity after a change; `null` and an empty text clear a field. Throws `invalid_request` for an invalid value,
 * for image data that is not what its data URI says, and for two names of one field that disagree.
 */
export async function changeIdentity(old: Identity, { avatar, persona, ...change }: IdentityChange): Promise<Identity> {
  // Text without a scheme is a symbol to show, such as an emoji.
  const isAddress = avatar === undefined || avatar === null || /:|\/\//.test(avatar)
  const renamed = merge(
    merge(change, isAddress ? { avatar_url: avatar } : { emoji: avatar }, 'avatar'),
    { vibe: persona },
    'persona',
  )
  const next = Object.fromEntries(
    Object.entries({ ...old, ...renamed }).filter(([, value]) => value !== null && value !== undefined && value !== ''),
  )
  const result = v.safeParse(Identity, next)
  if (!result.success) {
    const issue = result.issues[0]
    throw new Refusal('invalid_request', `${v.getDotPath(issue) ?? 'identity'}: ${issue.message}`)
  }
  const { avatar_url: url } = result.output
  if (url !== undefined && url !== old.avatar_url) await checkImage(url)
  return result.output
}

/** Throws `invalid_request` for a data URI whose bytes are not the image it declares. */
async function checkImage(url: string): Promise<void> {
  const [, declared, base64] = DATA_URL.exec(url) ?? []
  if (declared === undefined || base64 === undefined) return
  const found = await mediaTypeOf(Buffer.from(base64, 'base64'))
  if (found !== declared)
    throw new Refusal('invalid_request', `avatar_url: the data URI declares ${declared}, its bytes are ${found}`)
}

function merge(change: IdentityChange, other: IdentityChange, name: string): IdentityChange {
  for (const [key, value] of Object.entries(other)) {
    if (value === undefined) continue
    const already = Object.entries(change).find(([field]) => field === key)?.[1]
    if (already !== undefined && already !== value)
      throw new Refusal('invalid_request', `${name}: differs from ${key}; send one of them`)
    change = { ...change, [key]: value }
  }
  return change
}
