import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundledTemplates, enforced, messageOf } from 'svc/internal'
import type { SigningConfig } from './config.ts'
import type { Manifest } from './contract.ts'
import { exceeds } from './inherit.ts'
import { parseManifest } from './manifest.ts'
import type { AgentRow } from './schema.ts'
import type { ShippedProofs } from './shipped.ts'
import { SHIPPED } from './signing.ts'
import { readTrusted, verifyManifest } from './signing/envelope.ts'

/** Why the agent of a row may not run; `undefined` when it may. */
export type RowCheck = (row: AgentRow, manifest: Manifest) => string | undefined

/**
 * The policy `require` for agents that are there: who can write to the database can put a manifest into a row, and a key
 * may have been taken from the list since. The manifest must have no right that the signed one, or one that ships with
 * svc, has not: an edit may have removed some.
 */
export async function checkRows({ trusted_signers: signers }: SigningConfig, proofs: ShippedProofs): Promise<RowCheck> {
  const [shipped] = await Promise.all([shippedManifests(), proofs.open()])
  return (row, manifest) => {
    const problem = problemOf(row, manifest, { shipped, signers, proofs })
    if (problem !== undefined) enforced('manifest_signing')
    return problem && `manifest_signing.policy is "require": ${problem}; send its manifest again as signed_manifest`
  }
}

async function shippedManifests(): Promise<readonly Manifest[]> {
  const folder = bundledTemplates()
  const files = (await readdir(folder)).filter((name) => name.endsWith('.toml'))
  return await Promise.all(
    files.map(async (name) => parseManifest(await readFile(join(folder, name), 'utf8')).document),
  )
}
interface Trusted {
  /** Manifests of templates that came with svc. */
  readonly shipped: readonly Manifest[]
  readonly signers: readonly string[]
  readonly proofs: ShippedProofs
}
function problemOf(
  { signed_by: signer, envelope }: AgentRow,
  manifest: Manifest,
  { shipped, signers, proofs }: Trusted,
): string | undefined {
  if (signer === SHIPPED && envelope === null)
    return shipped.some((each) => exceeds(each, manifest) === undefined)
      ? undefined
      : 'the manifest has rights that no manifest of svc has'
  if (envelope === null) return signer === null ? 'the manifest is not signed' : 'the signature was not kept'
  try {
    const ofSvc = signer === SHIPPED ? proofs.read(envelope) : undefined
    const signed = parseManifest(ofSvc ?? verifyManifest(envelope, readTrusted(signers)).manifest).document
    const right = exceeds(signed, manifest)
    return right === undefined ? undefined : `the manifest has a right that the signed one has not: ${right}`
  } catch (error) {
    return messageOf(error)
  }
}
