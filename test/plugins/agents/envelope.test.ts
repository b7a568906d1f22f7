import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { keyProblem, signatureProblem } from '../../../plugins/agents/signing/ed25519.ts'
import {
  generateSigner,
  readTrusted,
  SignatureProblem,
  signManifest,
  verifyManifest,
} from '../../../plugins/agents/signing/envelope.ts'

const signer = generateSigner()
const other = generateSigner()
const manifest = 'name = "scout"\nversion = "1.2.0"\n'
const good = signManifest({ manifest, name: 'scout', version: '1.2.0' }, 'ops@example.org', signer.privatePem)
const trusted = readTrusted([signer.publicKey])
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n

function kind(work: () => unknown): string | undefined {
  try {
    work()
  } catch (error) {
    if (error instanceof SignatureProblem) return error.kind
    throw error
  }
  return undefined
}
const verdict = (change: object, keys = trusted): string | undefined =>
  kind(() => verifyManifest({ ...good, ...change }, keys))
/** The digits of the bytes in the other order. */
const turned = (hex: string): string => (hex.match(/../g) ?? []).toReversed().join('')
const little = (value: bigint): string => turned(value.toString(16).padStart(64, '0'))

describe('a signed manifest', () => {
  it('is taken as it was signed, as an object and as JSON', () => {
    expect(verifyManifest(good, trusted).manifest).toBe(manifest)
    expect(verifyManifest(JSON.stringify(good), trusted).manifest).toBe(manifest)
  })

  it('is refused when any bit of it is another', () => {
    expect(verdict({ manifest: `${manifest} ` })).toBe('altered')
    expect(verdict({ manifest: manifest.replaceAll('\n', '\r\n') })).toBe('altered')
    for (const [field, value] of Object.entries({ name: 'scour', version: '1.1.0', signer_id: 'ops@example.com' }))
      expect(verdict({ [field]: value })).toBe('forged')
    const bytes = Buffer.from(good.signature, 'hex')
    for (let bit = 0; bit < 512; bit++) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(verdict({ signature: changed.toString('hex') })).toBe('forged')
    }
  })

  it('is refused when its key is not trusted, although the signature is good', () => {
    expect(verdict({}, [])).toBe('untrusted')
    expect(verdict({}, readTrusted([other.publicKey]))).toBe('untrusted')
    expect(verdict({ signer_public_key: other.publicKey })).toBe('forged')
  })

  it('is refused when the parts of what was signed are put together in another way', () => {
    const first = signManifest({ manifest: 'x', name: 'ab', version: 'c' }, 's', signer.privatePem)
    expect(kind(() => verifyManifest({ ...first, name: 'a', version: 'bc' }, trusted))).toBe('forged')
    const key = createPrivateKey(signer.privatePem)
    expect(verdict({ signature: sign(null, Buffer.from(good.content_hash), key).toString('hex') })).toBe('forged')
    expect(verdict({ signature: sign(null, Buffer.from(manifest), key).toString('hex') })).toBe('forged')
  })

  it('is refused with a number of the signature written in a second way', () => {
    const scalar = BigInt(`0x${turned(good.signature.slice(64))}`)
    expect(verdict({ signature: good.signature.slice(0, 64) + little(scalar + ORDER) })).toBe('forged')
    expect(signatureProblem(Buffer.from(good.signature.slice(0, 64) + little(scalar + ORDER), 'hex'))).toContain(
      'canonical',
    )
    expect(signatureProblem(Buffer.from(`${'ff'.repeat(31)}7f${good.signature.slice(64)}`, 'hex'))).toContain(
      'canonical',
    )
    expect(signatureProblem(Buffer.from(good.signature, 'hex'))).toBeUndefined()
  })

  it('is no envelope with a part missing, of another length or of another kind', () => {
    for (const field of Object.keys(good))
      expect([field, verdict({ [field]: undefined })]).toEqual([field, 'malformed'])
    for (const change of [
      { signature: good.signature.slice(2) },
      { signature: `${good.signature}00` },
      { signer_public_key: 'z'.repeat(64) },
      { content_hash: '' },
      { signer_id: 'a\nb' },
      { name: '' },
    ])
      expect(verdict(change)).toBe('malformed')
    for (const envelope of [undefined, null, 7, [], '{', '"text"'])
      expect(kind(() => verifyManifest(envelope, trusted))).toBe('malformed')
  })
})

describe('a trust list', () => {
  it('is not used at all when one entry is no key', () => {
    for (const wrong of ['', 'ab', `${signer.publicKey}00`, 'z'.repeat(64)])
      expect(kind(() => readTrusted([signer.publicKey, wrong]))).toBe('malformed')
    expect(readTrusted([])).toEqual([])
  })

  it('takes no point of small order, in either of its forms, and no key in a second form', () => {
    const small = [
      0n,
      1n,
      2n ** 255n - 20n,
      0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
      0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
    ]
    for (const y of small)
      for (const top of [0n, 2n ** 255n]) expect(kind(() => readTrusted([little(y + top)]))).toBe('malformed')
    expect(keyProblem(Buffer.from(little(2n ** 255n - 19n + 3n), 'hex'))).toContain('canonical')
    expect(keyProblem(Buffer.from(signer.publicKey, 'hex'))).toBeUndefined()
  })
})

describe('a key that signs', () => {
  it('is an Ed25519 key and nothing else', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString()
    expect(kind(() => signManifest({ manifest, name: 'scout', version: '1' }, 's', rsa))).toBe('malformed')
    expect(kind(() => signManifest({ manifest, name: 'scout', version: '1' }, 's', 'no key'))).toBe('malformed')
  })
})
