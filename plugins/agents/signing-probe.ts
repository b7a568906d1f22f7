import type { Finding, ProbeCase } from '../security/contract.ts'
import { Signatures } from './signing.ts'
import type { SigningConfig } from './config.ts'

const manifest = 'name = "probe"\nversion = "1.0.0"\n'

/**
 * A key of its own: what it signs is taken, everything changed is not, and a signature by a key nobody trusts is not
 * either.
 */
export async function probe(config: SigningConfig): Promise<Finding> {
  const { generateSigner, readTrusted, signManifest, verifyManifest } = await import('./signing/envelope.ts')
  const signer = generateSigner()
  const trusted = readTrusted([signer.publicKey])
  const good = signManifest({ manifest, name: 'probe', version: '1.0.0' }, 'probe', signer.privatePem)
  const flipped = (hex: string, at: number): string =>
    `${hex.slice(0, at)}${(Number.parseInt(hex[at] ?? '0', 16) ^ 1).toString(16)}${hex.slice(at + 1)}`
  const takes = (envelope: unknown, keys = trusted): boolean => {
    try {
      verifyManifest(envelope, keys)
      return true
    } catch {
      return false /* which is the answer */
    }
  }
  const cases: ProbeCase[] = [
    { name: 'a signed manifest is taken', held: takes(good) && verifyManifest(good, trusted).manifest === manifest },
    { name: 'a changed manifest is refused', held: !takes({ ...good, manifest: manifest.replace('probe', 'prob3') }) },
    { name: 'a changed hash is refused', held: !takes({ ...good, content_hash: flipped(good.content_hash, 5) }) },
    {
      name: 'a changed signature is refused',
      held:
        !takes({ ...good, signature: flipped(good.signature, 7) }) &&
        !takes({ ...good, signature: flipped(good.signature, 127) }),
    },
    { name: 'another key is refused', held: !takes({ ...good, signer_public_key: generateSigner().publicKey }) },
    {
      name: 'another name, version or signer is refused',
      held:
        !takes({ ...good, name: 'other' }) &&
        !takes({ ...good, version: '2.0.0' }) &&
        !takes({ ...good, signer_id: 'other' }),
    },
    {
      name: 'a good signature by a key nobody trusts is refused',
      held: !takes(good, []) && !takes(good, readTrusted([generateSigner().publicKey])),
    },
    { name: 'the point of order one is no key', held: !succeeds(() => readTrusted([`01${'0'.repeat(62)}`])) },
  ]
  // With this key as the only one, so that nothing of the installation is touched.
  const signatures = new Signatures(
    { policy: 'require', trusted_signers: [signer.publicKey] },
    { write: () => Promise.resolve() },
  )
  cases.push(
    { name: 'the daemon takes a signed manifest', held: (await signatures.open(good, undefined)).toml === manifest },
    {
      name: 'the daemon refuses a changed manifest',
      held: await signatures.open({ ...good, manifest: `${manifest}\n` }, undefined).then(
        () => false,
        () => true,
      ),
    },
    {
      name: 'the daemon refuses an unsigned manifest',
      held: !succeeds(() => signatures.admit(null)) && succeeds(() => signatures.admit('someone')),
    },
    {
      name: 'every trusted key of this installation is one',
      held: succeeds(() => readTrusted(config.trusted_signers)),
    },
  )
  return { cases, evidence: `policy: ${config.policy}, ${config.trusted_signers.length} pinned signers` }
}

function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false /* which is the answer */
  }
}
