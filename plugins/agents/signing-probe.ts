import type { Finding, ProbeCase } from '../security/contract.ts'
import type * as envelopeModule from './signing/envelope.ts'
import { Signatures } from './signing.ts'
import type { SigningConfig } from './config.ts'

const manifest = 'name = "probe"\nversion = "1.0.0"\n'

type Envelopes = typeof envelopeModule
type Signer = ReturnType<Envelopes['generateSigner']>
type Signed = ReturnType<Envelopes['signManifest']>

/** With a key of its own: what it signs is taken; whatever is changed, or signed by an untrusted key, is refused. */
export async function probe(config: SigningConfig): Promise<Finding> {
  const envelopes = await import('./signing/envelope.ts')
  const signer = envelopes.generateSigner()
  const good = envelopes.signManifest({ manifest, name: 'probe', version: '1.0.0' }, 'probe', signer.privatePem)
  const trustedKeys: ProbeCase = {
    name: 'every trusted key of this installation is one',
    passed: succeeds(() => envelopes.readTrusted(config.trusted_signers)),
  }
  return {
    cases: [...signatureCases(envelopes, signer, good), ...(await daemonCases(signer, good)), trustedKeys],
    evidence: `policy: ${config.policy}, ${config.trusted_signers.length} pinned signers`,
  }
}

/** What the verification of a signature accepts. */
function signatureCases(
  { generateSigner, readTrusted, verifyManifest }: Envelopes,
  signer: Signer,
  good: Signed,
): ProbeCase[] {
  const trusted = readTrusted([signer.publicKey])
  const accepts = (envelope: unknown, keys = trusted): boolean => succeeds(() => verifyManifest(envelope, keys))
  return [
    {
      name: 'a signed manifest is taken',
      passed: accepts(good) && verifyManifest(good, trusted).manifest === manifest,
    },
    {
      name: 'a changed manifest is refused',
      passed: !accepts({ ...good, manifest: manifest.replace('probe', 'prob3') }),
    },
    { name: 'a changed hash is refused', passed: !accepts({ ...good, content_hash: flipped(good.content_hash, 5) }) },
    {
      name: 'a changed signature is refused',
      passed:
        !accepts({ ...good, signature: flipped(good.signature, 7) }) &&
        !accepts({ ...good, signature: flipped(good.signature, 127) }),
    },
    { name: 'another key is refused', passed: !accepts({ ...good, signer_public_key: generateSigner().publicKey }) },
    {
      name: 'another name, version or signer is refused',
      passed:
        !accepts({ ...good, name: 'other' }) &&
        !accepts({ ...good, version: '2.0.0' }) &&
        !accepts({ ...good, signer_id: 'other' }),
    },
    {
      name: 'a good signature by a key nobody trusts is refused',
      passed: !accepts(good, []) && !accepts(good, readTrusted([generateSigner().publicKey])),
    },
    { name: 'the point of order one is no key', passed: !succeeds(() => readTrusted([`01${'0'.repeat(62)}`])) },
  ]
}

/** What the daemon does with it, with this key as the only trusted one, so that the installation is not touched. */
async function daemonCases(signer: Signer, good: Signed): Promise<ProbeCase[]> {
  const signatures = new Signatures(
    { policy: 'require', trusted_signers: [signer.publicKey] },
    { write: () => Promise.resolve() },
  )
  return [
    { name: 'the daemon takes a signed manifest', passed: (await signatures.open(good, undefined)).toml === manifest },
    {
      name: 'the daemon refuses a changed manifest',
      passed: await signatures.open({ ...good, manifest: `${manifest}\n` }, undefined).then(
        () => false,
        () => true,
      ),
    },
    {
      name: 'the daemon refuses an unsigned manifest',
      passed: !succeeds(() => signatures.admit(null)) && succeeds(() => signatures.admit('someone')),
    },
  ]
}

/** `hex` with one bit of the digit at `index` flipped. */
function flipped(hex: string, index: number): string {
  const digit = (Number.parseInt(hex[index] ?? '0', 16) ^ 1).toString(16)
  return `${hex.slice(0, index)}${digit}${hex.slice(index + 1)}`
}

function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false /* which is the answer */
  }
}
