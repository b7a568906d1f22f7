import { open } from 'node:fs/promises'
import { defineCommand, commandName, exits, Failure, print, printJson } from 'svc/cli'

export default defineCommand({
  description:
    'Create a key that signs manifests. The private key is written to a file only you can read; the public one ' +
    'is printed, ' +
    'for manifest_signing.trusted_signers.',
  args: {
    file: { type: 'positional', required: true, description: 'New file for the private key' },
    json: { type: 'boolean', description: 'Print JSON' },
  },
  examples: [['svc manifest keygen signer.pem', 'keep signer.pem to yourself']],
  async run(args) {
    const { generateSigner } = await import('../signing/envelope.ts')
    const { privatePem, publicKey } = generateSigner()
    let handle
    // Never over another key: whatever was signed with it could not be signed again.
    try {
      handle = await open(args.file, 'wx', 0o600)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      throw new Failure(
        exits.failed,
        code === 'EEXIST' ? `${args.file} exists already` : `${args.file} cannot be created (${code})`,
        code === 'EEXIST' ? 'name a file that does not exist yet' : 'name a file in a folder you can write to',
        { cause: error },
      )
    }
    try {
      await handle.writeFile(privatePem)
      await handle.sync()
    } finally {
      await handle.close()
    }
    if (args.json) printJson({ file: args.file, public_key: publicKey })
    else
      print(
        `the private key is in ${args.file}\npublic key: ${publicKey}\n` +
          `trust it with: ${commandName()} config set manifest_signing.trusted_signers ${publicKey}`,
      )
    return exits.ok
  },
})
