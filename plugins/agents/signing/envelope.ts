import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import * as v from 'valibot'
import { enforced } from 'svc/internal'
import { readJson } from 'svc/sdk'
import { keyProblem, signatureProblem } from './ed25519.ts'

/** Part of the signed message, so that a signature made for another purpose is not valid here. */
const PURPOSE = 'svc-agent-manifest-1'
const MAX_BYTES = 1_048_576

const hex = (chars: number) =>
  v.pipe(
    v.string(),
    v.regex(/^[0-9a-f]*$/i, 'must be hexadecimal digits'),
    v.check((text) => text.length === chars, `must have ${chars} digits`),
  )
const word = (max: number) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(max),
    v.check((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'must not hold control characters'),
  )
/** A manifest with the signature of its author. `manifest` is the exact text that was signed. */
export const SignedManifest = v.object({
  manifest: v.pipe(
    v.string(),
    v.check(
      (text) => text.isWellFormed() && Buffer.byteLength(text) <= MAX_BYTES,
      `must be at most ${MAX_BYTES} bytes of well-formed Unicode`,
    ),
  ),
  /** SHA-256 of the text. */
  content_hash: hex(64),
  name: word(256),
  version: word(64),
  signature: hex(128),
  signer_public_key: hex(64),
  signer_id: word(256),
})
export type SignedManifest = v.InferOutput<typeof SignedManifest>

/** Why an envelope is rejected. `malformed`: it is not an envelope. Otherwise it is one that must not be used. */
export class SignatureProblem extends Error {
  override readonly name = 'SignatureProblem'
  readonly kind: 'malformed' | 'altered' | 'forged' | 'untrusted'
  constructor(kind: 'malformed' | 'altered' | 'forged' | 'untrusted', message: string) {
    super(message)
    this.kind = kind
  }
}

/** A private key as PEM, to be kept secret, and its public key as the 64 hexadecimal digits of a trust list. */
export function generateSigner(): { readonly privatePem: string; readonly publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return {
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: rawKey(publicKey).toString('hex'),
  }
}

/** Signs the exact text. `name` and `version` are those in it. Throws `SignatureProblem` unless the key is Ed25519. */
export function signManifest(
  text: { readonly manifest: string; readonly name: string; readonly version: string },
  signerId: string,
  privatePem: string,
): SignedManifest {
  let key: KeyObject
  try {
    key = createPrivateKey(privatePem)
  } catch (error) {
    throw new SignatureProblem(
      'malformed',
      `the key is not a private key in PEM form (${error instanceof Error ? error.name : 'unreadable'})`,
    )
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw new SignatureProblem(
      'malformed',
      `the key is not an Ed25519 key but ${key.asymmetricKeyType ?? 'another kind'}`,
    )
  const unsigned = {
    ...text,
    content_hash: hashOf(text.manifest),
    signer_public_key: rawKey(createPublicKey(key)).toString('hex'),
    signer_id: signerId,
    signature: '0'.repeat(128),
  }
  const parsed = v.safeParse(SignedManifest, unsigned)
  if (!parsed.success)
    throw new SignatureProblem(
      'malformed',
      `${v.getDotPath(parsed.issues[0]) ?? 'manifest'}: ${parsed.issues[0].message}`,
    )
  return { ...unsigned, signature: sign(null, messageOf(unsigned), key).toString('hex') }
}

/** The keys of a trust list as bytes. Throws for an invalid entry: a partly valid list is not used. */
export function readTrusted(list: readonly string[]): readonly Buffer[] {
  return list.map((entry, index) => {
    const key = /^[0-9a-f]{64}$/i.test(entry.trim()) ? Buffer.from(entry.trim(), 'hex') : undefined
    const problem = key ? keyProblem(key) : 'is not 64 hexadecimal digits'
    if (!key || problem !== undefined) throw new SignatureProblem('malformed', `trusted_signers[${index}] ${problem}`)
    return key
  })
}

/**
 * Returns the envelope if the hash and the signature are valid and the key is trusted. Nothing is serialized again:
 * the caller parses the text that is returned. Throws `SignatureProblem`.
 */
export function verifyManifest(envelope: unknown, trusted: readonly Buffer[]): SignedManifest {
  try {
    return checkEnvelope(envelope, trusted)
  } catch (error) {
    if (error instanceof SignatureProblem) enforced('manifest_signing')
    throw error
  }
}

function checkEnvelope(envelope: unknown, trusted: readonly Buffer[]): SignedManifest {
  const parsed = v.safeParse(SignedManifest, typeof envelope === 'string' ? parseEnvelope(envelope) : envelope)
  if (!parsed.success)
    throw new SignatureProblem(
      'malformed',
      `signed_manifest.${v.getDotPath(parsed.issues[0]) ?? ''}: ${parsed.issues[0].message}`,
    )
  const signed = parsed.output
  if (hashOf(signed.manifest) !== signed.content_hash.toLowerCase())
    throw new SignatureProblem('altered', 'the manifest is not the one that was signed: its hash is another')
  const key = Buffer.from(signed.signer_public_key, 'hex')
  const signature = Buffer.from(signed.signature, 'hex')
  const problem = keyProblem(key)
  if (problem !== undefined) throw new SignatureProblem('forged', `the key of the signer ${problem}`)
  const malformed = signatureProblem(signature)
  if (malformed !== undefined) throw new SignatureProblem('forged', `the signature ${malformed}`)
  if (!verify(null, messageOf(signed), publicKeyOf(key), signature))
    throw new SignatureProblem('forged', 'the signature does not belong to this manifest, name, version and signer')
  // Checked last: a key that came with the envelope proves nothing.
  if (!trusted.some((each) => each.equals(key)))
    throw new SignatureProblem(
      'untrusted',
      `the signer ${signed.signer_public_key.toLowerCase()} is not among manifest_signing.trusted_signers`,
    )
  return signed
}

function parseEnvelope(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    throw new SignatureProblem('malformed', 'signed_manifest is not JSON')
  }
}
const hashOf = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

/** The signed message: each part is preceded by its length in bytes. */
function messageOf({
  signer_id,
  name,
  version,
  content_hash,
}: Pick<SignedManifest, 'signer_id' | 'name' | 'version' | 'content_hash'>): Buffer {
  return Buffer.from(
    [PURPOSE, signer_id, name, version, content_hash.toLowerCase()]
      .map((part) => `${Buffer.byteLength(part)}:${part}`)
      .join(''),
    'utf8',
  )
}

/** An Ed25519 key is the last 32 bytes of its standard encoding. */
const PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
function rawKey(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' }).subarray(PREFIX.byteLength)
}
function publicKeyOf(raw: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([PREFIX, raw]), format: 'der', type: 'spki' })
}
