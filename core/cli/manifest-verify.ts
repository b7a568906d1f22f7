import { readTrusted, SignatureProblem, verifyManifest } from '../signing/envelope.ts'
import type { SignedManifest } from '../signing/envelope.ts'
import type { Config } from '../config/load.ts'
import { isObject } from '../schema/object.ts'
import { command, homeArgs } from './command.ts'
import { exits, Failure } from './failure.ts'
import { readExactly } from './manifest-file.ts'
import { print, printJson } from './output.ts'
import { findPlace, loadSettings } from './settings.ts'
import { commandLine } from '../process/command-name.ts'

export default command({
  description:
    'Check a signed manifest as the daemon of this home would: the text is the one that was signed, the signature is good, the signer is trusted.',
  args: {
    envelope: { type: 'positional', required: true, description: `File that ${commandLine('manifest sign')} made` },
    trusted: {
      type: 'string',
      valueHint: 'keys',
      description: 'Public keys to trust instead of manifest_signing.trusted_signers, separated by commas',
    },
    ...homeArgs,
  },
  examples: [
    ['svc manifest verify scout.signed.json', 'with the keys of the configuration'],
    ['svc manifest verify scout.signed.json --trusted 9a…', 'with this key'],
  ],
  async run(args) {
    const trusted =
      args.trusted === undefined
        ? trustedSigners((await loadSettings(findPlace(args))).config)
        : args.trusted
            .split(',')
            .map((key) => key.trim())
            .filter((key) => key !== '')
    let signed: SignedManifest
    try {
      signed = verifyManifest(await readExactly(args.envelope), readTrusted(trusted))
    } catch (error) {
      if (error instanceof SignatureProblem)
        throw new Failure(
          exits.refused,
          `${args.envelope}: ${error.message}`,
          error.kind === 'untrusted'
            ? 'add the key to manifest_signing.trusted_signers if it belongs to someone you trust'
            : undefined,
          { cause: error },
        )
      throw error
    }
    const { name, version, signer_id: signer, signer_public_key: key, content_hash: hash } = signed
    if (args.json)
      printJson({ valid: true, name, version, signer_id: signer, signer_public_key: key, content_hash: hash })
    else print(`agent "${name}" ${version} is signed by ${signer} (${key})`)
    return exits.ok
  },
})

/** Of the configuration, whose section the daemon checks. */
function trustedSigners({ manifest_signing: section }: Config): readonly string[] {
  const signers = isObject(section) ? section['trusted_signers'] : undefined
  return Array.isArray(signers) ? signers.map(String) : []
}
