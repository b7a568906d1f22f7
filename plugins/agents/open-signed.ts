import * as v from 'valibot'
import { parse, Refusal } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { ManifestDocument } from './manifest-schema.ts'
import { readTable } from './manifest.ts'
import type { LoadedAgent } from './registry.ts'
import type { Opened } from './signing.ts'
import { readTrusted, SignatureProblem, verifyManifest } from './signing/envelope.ts'

/** What the signature names. Faults elsewhere are for who makes the agent. */
const Head = v.pick(ManifestDocument, ['name', 'version'])

/** As `Signatures.open`. */
export async function openSigned(
  trusted: readonly string[],
  audit: Pick<Audit, 'write'>,
  envelope: unknown,
  beside: string | undefined,
): Promise<Opened> {
  try {
    const signed = verifyManifest(envelope, readTrusted(trusted))
    const { manifest, name, version, signer_id: signer, signer_public_key: key } = signed
    if (beside !== undefined && beside !== '' && beside !== manifest)
      throw new Refusal('invalid_request', 'manifest_toml: differs from the manifest that was signed; leave it out')
    const of = parse(Head, readTable(manifest), 'manifest')
    if (of.name !== name || of.version !== version)
      throw new SignatureProblem(
        'altered',
        `the manifest is of "${of.name}" ${of.version}, and the signature is for "${name}" ${version}`,
      )
    return { toml: manifest, signedBy: `${signer} (${key.toLowerCase()})`, envelope: JSON.stringify(signed) }
  } catch (error) {
    if (!(error instanceof SignatureProblem)) throw error
    if (error.kind === 'malformed') throw new Refusal('invalid_request', error.message, { cause: error })
    await audit.write({ event: 'auth_attempt', details: `a signed manifest was refused: ${error.message}` })
    throw new Refusal('forbidden', `signed_manifest: ${error.message}`, { cause: error })
  }
}

/** Throws `conflict` for a signed manifest that is older than that of the agent: yesterday's has a good signature too. */
export function checkNewer({ name, manifest, row }: LoadedAgent, version: string, signedBy: string | null): void {
  if (row.signed_by === null || signedBy === null || !isOlder(version, manifest.version)) return
  throw new Refusal(
    'conflict',
    `agent "${name}" has version ${manifest.version} of its signed manifest; ${version} is older`,
  )
}

/**
 * Whether the first version is older than the second. Parts that are not numbers count as equal: only a version that is
 * certainly older gives a warning.
 */
function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => (text.split(/[-+]/, 1)[0] ?? '').split('.').map(Number))
  for (let at = 0; at < Math.max(one?.length ?? 0, other?.length ?? 0); at++) {
    const difference = (one?.[at] ?? 0) - (other?.[at] ?? 0)
    if (Number.isNaN(difference)) return false
    if (difference !== 0) return difference < 0
  }
  return false
}
