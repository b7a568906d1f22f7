import {
  defineCommand,
  commandLine,
  exits,
  Failure,
  homeArgs,
  isObject,
  locateHome,
  loadSettings,
  print,
  printJson,
} from 'svc/cli'
import type { Config } from 'svc/cli'
import { readExactly } from './manifest-file.ts'

export default defineCommand({
  description:
    'Check a signed manifest as the daemon of this home would: the text is the one that was signed, ' +
    'the signature is good, the signer is trusted.',
  args: {
    envelope: {
      type: 'positional',
      required: true,
      description: `File that ${commandLine('manifest sign <manifest>')} made`,
    },
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
        ? trustedSigners((await loadSettings(locateHome(args))).config)
        : args.trusted
            .split(',')
            .map((key) => key.trim())
            .filter((key) => key !== '')
    const signed = await verify(args.envelope, trusted)
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

async function verify(file: string, trusted: readonly string[]) {
  const { readTrusted, SignatureProblem, verifyManifest } = await import('../signing/envelope.ts')
  const envelope = await readExactly(file)
  try {
    return verifyManifest(envelope, readTrusted(trusted))
  } catch (error) {
    if (!(error instanceof SignatureProblem)) throw error
    const advice =
      error.kind === 'untrusted'
        ? 'add the key to manifest_signing.trusted_signers if it belongs to someone you trust'
        : undefined
    throw new Failure(exits.refused, `${file}: ${error.message}`, advice, { cause: error })
  }
}
