import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import * as v from 'valibot'
import { exportPrivate, importPrivate, rawPublicKey, readPublicKey } from './key-exchange.ts'
import { LinkRefusal } from './mac.ts'
import type { Link } from './handshake.ts'
import { plainText } from './plain-text.ts'

type Role = Link['role']

/** The first frame of each side: which key it has, proven for this link alone. */
export const IdentityMessage = v.object({
  type: v.literal('identity'),
  node_name: v.pipe(v.string(), v.maxLength(128)),
  public_key: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  signature: v.pipe(v.string(), v.regex(/^[0-9a-f]{128}$/)),
})
export type IdentityMessage = v.InferOutput<typeof IdentityMessage>

/** The key pair (Ed25519) that this node keeps for ever. */
export class Identity {
  readonly #private: KeyObject
  /** Hexadecimal digits. */
  readonly publicKey: string
  constructor(private_ = generateKeyPairSync('ed25519').privateKey) {
    this.#private = private_
    this.publicKey = rawPublicKey(private_)
  }

  static read(pem: string): Identity {
    return new Identity(importPrivate(pem))
  }
  /** For the vault. */
  write(): string {
    return exportPrivate(this.#private)
  }
  get fingerprint(): string {
    return fingerprintOf(this.publicKey)
  }

  prove({ transcript, role }: Pick<Link, 'transcript' | 'role'>, nodeName: string): IdentityMessage {
    const text = statement(transcript, role, this.publicKey, nodeName)
    return {
      type: 'identity',
      node_name: nodeName,
      public_key: this.publicKey,
      signature: sign(undefined, text, this.#private).toString('hex'),
    }
  }
}

/** The key and the name of the other side. Throws `LinkRefusal` unless the key signed this very handshake. */
export function checkIdentity(
  { transcript, role }: Pick<Link, 'transcript' | 'role'>,
  message: unknown,
): { readonly publicKey: string; readonly nodeName: string } {
  const parsed = v.safeParse(IdentityMessage, message)
  if (!parsed.success) throw new LinkRefusal(400, 'The first frame of a link says who the peer is; this one does not')
  const { node_name: nodeName, public_key: publicKey, signature } = parsed.output
  const text = statement(transcript, role === 'initiator' ? 'responder' : 'initiator', publicKey, nodeName)
  if (!isSigned(text, publicKey, signature))
    throw new LinkRefusal(403, 'The peer did not prove that it has the key it shows')
  // The signature is over the name as it came.
  return { publicKey, nodeName: plainText(nodeName, 128) }
}

/** What people compare: 32 characters in groups of four. */
export function fingerprintOf(publicKey: string): string {
  const digits = createHash('sha256').update(publicKey, 'hex').digest('hex').slice(0, 32)
  return digits.match(/.{4}/g)?.join('-') ?? digits
}

function isSigned(text: Buffer, publicKey: string, signature: string): boolean {
  try {
    return verify(undefined, text, readPublicKey('Ed25519', publicKey), Buffer.from(signature, 'hex'))
  } catch {
    return false
  }
}

/** The transcript has a fixed length and the key too, so nothing can move from one part into the next. */
function statement(transcript: Buffer, role: Role, publicKey: string, nodeName: string): Buffer {
  return Buffer.concat([
    Buffer.from(`svc-ofp-identity ${role}\0`),
    transcript,
    Buffer.from(publicKey, 'hex'),
    Buffer.from(nodeName),
  ])
}
