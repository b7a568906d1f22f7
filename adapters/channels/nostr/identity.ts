import { decode, npubEncode } from 'nostr-tools/nip19'
import { finalizeEvent, getPublicKey } from 'nostr-tools/pure'
import type { EventTemplate } from 'nostr-tools/pure'
import { UpstreamFailure } from 'svc/sdk'
import type { Event } from './wire.ts'

/** The key pair of the bot. */
export class Identity {
  readonly privateKey: Uint8Array
  /** 64 hexadecimal digits. */
  readonly publicKey: string
  readonly npub: string

  constructor(token: string) {
    this.privateKey = privateKeyOf(token)
    this.publicKey = getPublicKey(this.privateKey)
    this.npub = npubEncode(this.publicKey)
  }

  sign(template: EventTemplate): Event {
    return finalizeEvent(template, this.privateKey)
  }
}

/** The public key that an allow-list names: npub1… or 64 hexadecimal digits. */
export function publicKeyOf(name: string): string | undefined {
  const text = name
    .trim()
    .toLowerCase()
    .replace(/^nostr:/, '')
  if (/^[0-9a-f]{64}$/.test(text)) return text
  if (!/^npub1[02-9ac-hj-np-z]{58}$/.test(text)) return undefined
  try {
    const { type, data } = decode(text)
    return type === 'npub' ? data : undefined
  } catch {
    // A typing error: the checksum is wrong, so it names nobody.
    return undefined
  }
}

function privateKeyOf(token: string): Uint8Array {
  if (/^[0-9a-f]{64}$/i.test(token)) return Uint8Array.from(Buffer.from(token, 'hex'))
  try {
    const { type, data } = decode(token.toLowerCase())
    if (type === 'nsec') return data
  } catch {
    // The error of the package may quote the key.
  }
  throw new UpstreamFailure('nostr', 'nostr: the private key is mistyped: its checksum is wrong', {
    reason: 'auth',
    retry: 'never',
  })
}
