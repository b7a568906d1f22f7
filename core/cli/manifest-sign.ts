import { writeFile } from 'node:fs/promises'
import { manifestHead } from '../config/manifest-head.ts'
import { SignatureProblem, signManifest } from '../signing/envelope.ts'
import { command } from './command.ts'
import { exits, Failure } from './failure.ts'
import { readExactly } from './manifest-file.ts'
import { note, print } from './output.ts'
import { commandLine } from '../process/command-name.ts'

export default command({
  description:
    'Sign the manifest of an agent. What is printed goes into the field signed_manifest of POST /api/agents.',
  args: {
    manifest: { type: 'positional', required: true, description: 'TOML file of the agent' },
    key: {
      type: 'string',
      valueHint: 'file',
      description: `File with the private key, as ${commandLine('manifest keygen')} makes it`,
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
    let head
    try {
      head = manifestHead(manifest)
    } catch (error) {
      throw new Failure(
        exits.failed,
        `${args.manifest} is not valid TOML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`,
        undefined,
        { cause: error },
      )
    }
    try {
      const text = `${JSON.stringify(signManifest({ manifest, ...head }, args.signer ?? 'svc', await readExactly(args.key)), null, 2)}\n`
      if (args.out === undefined) print(text.trimEnd())
      else {
        await writeFile(args.out, text)
        note(`${args.manifest} is signed in ${args.out}`)
      }
    } catch (error) {
      if (error instanceof SignatureProblem) throw new Failure(exits.failed, error.message, undefined, { cause: error })
      throw error
    }
    return exits.ok
  },
})
