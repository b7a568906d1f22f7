import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  commandName,
  connect,
  escapeControls,
  exits,
  Failure,
  note,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'
import { manifestBody, readManifestFile } from './manifest-file.ts'

const Spawned = v.looseObject({
  agent_id: v.string(),
  name: v.string(),
  warnings: v.optional(v.array(v.string()), []),
})

export default defineCommand({
  description: 'Spawn an agent from a manifest, or from a name and a few flags.',
  args: {
    manifest: {
      type: 'positional',
      required: false,
      description:
        `TOML file of the agent, or the signed one that ${commandLine('manifest sign <manifest>')} made; ` +
        '- reads standard input',
    },
    name: { type: 'string', valueHint: 'name', description: 'Name of the agent when there is no manifest' },
    provider: {
      type: 'string',
      valueHint: 'name',
      description: 'Its model provider (with --name; default: the one of the daemon)',
    },
    model: { type: 'string', valueHint: 'id', description: 'Its model (with --name)' },
    prompt: { type: 'string', valueHint: 'text', description: 'Its system prompt (with --name)' },
    ...clientArgs,
  },
  examples: [
    ['svc agent spawn scout.toml', 'from a file'],
    ['svc agent spawn scout.signed.json', 'signed, as manifest_signing may require it'],
    ['svc agent spawn - < scout.toml', 'from standard input'],
    ['svc agent spawn --name scout --prompt "You find things."', 'without a file'],
  ],
  async run(args) {
    const manifest = await readManifest(args)
    const connection = await connect(args)
    const agent = await callDaemon(connection, (client) =>
      client.call('POST', '/api/agents', Spawned, { body: manifestBody(manifest) }),
    ).catch((error: unknown) => {
      throw nameFile(error, args.manifest)
    })
    for (const warning of agent.warnings) note(`svc: warning: ${escapeControls(warning)}`)
    if (args.json) printJson(agent)
    else {
      const word = /^[\w.@:+-]+$/.test(agent.name) ? agent.name : agent.agent_id
      print(`agent "${agent.name}" (${agent.agent_id}) was created; talk to it with: ${commandName()} chat ${word}`)
    }
    return exits.ok
  },
})

/** The daemon names the field of the request; the user knows the manifest by its file. */
function nameFile(error: unknown, file: string | undefined): unknown {
  if (
    !(error instanceof Failure) ||
    file === undefined ||
    file === '-' ||
    !/^manifest_toml:(?: |\d+: )/.test(error.message)
  )
    return error
  return new Failure(error.exit, error.message.replaceAll(/^manifest_toml(?=:)/gm, file), error.advice, {
    cause: error,
  })
}

async function readManifest(args: {
  manifest?: string | undefined
  name?: string | undefined
  provider?: string | undefined
  model?: string | undefined
  prompt?: string | undefined
}): Promise<string> {
  const flags = [args.name, args.provider, args.model, args.prompt].some((flag) => flag !== undefined)
  if (args.manifest !== undefined && flags) throw new Failure(exits.usage, 'give a manifest or --name, not both')
  if (args.manifest !== undefined) return await readManifestFile(args.manifest)
  if (args.name === undefined)
    throw new Failure(
      exits.usage,
      'name a manifest or give --name',
      `for example: ${commandLine('agent spawn --name scout')}`,
    )
  const { renderToml } = await import('svc/internal')
  return renderToml({
    name: args.name,
    module: 'builtin:chat',
    model: {
      provider: args.provider ?? 'default',
      model: args.model ?? 'default',
      ...omitUndefined({ system_prompt: args.prompt }),
    },
  })
}
