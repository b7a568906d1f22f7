import { writeFile } from 'node:fs/promises'
import { defineCommand, commandLine, exits, Failure, note, print } from 'svc/cli'
import { readExactly, readHead } from './manifest-file.ts'

export default defineCommand({
  description: 'Sign the manifest of an agent. Send the output as the field signed_manifest of POST /api/agents.',
  args: {
    manifest: { type: 'positional', required: true, description: 'TOML file of the agent' },
    key: {
      type: 'string',
      valueHint: 'file',
      description: `File with the private key, as ${commandLine('manifest keygen <file>')} makes it`,
    },
    signer: {
      type: 'string',
      valueHint: 'name',
      description: 'Who signs, for people to read (default: svc)',
    },
    out: { type: 'string', valueHint: 'file', description: 'File for the envelope instead of standard output' },
  },
  examples: [
    ['svc manifest sign scout.toml --key signer.pem > scout.signed.json', 'sign'],
    ['svc manifest sign scout.toml --key signer.pem --signer ops@example.org --out scout.signed.json', 'with a name'],
  ],
  async run(args) {
    if (args.key === undefined)
      throw new Failure(exits.usage, '--key is missing', `make one with ${commandLine('manifest keygen signer.pem')}`)
    const manifest = await readExactly(args.manifest)
    const head = readHead(args.manifest, manifest)
    const { SignatureProblem, signManifest } = await import('../signing/envelope.ts')
    try {
      const signed = signManifest({ manifest, ...head }, args.signer ?? 'svc', await readExactly(args.key))
      const text = JSON.stringify(signed, null, 2)
      if (args.out === undefined) print(text)
      else {
        await writeFile(args.out, `${text}\n`)
        note(`${args.manifest} is signed in ${args.out}`)
      }
    } catch (error) {
      if (error instanceof SignatureProblem) throw new Failure(exits.failed, error.message, undefined, { cause: error })
      throw error
    }
    return exits.ok
  },
})
