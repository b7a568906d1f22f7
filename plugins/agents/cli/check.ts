import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'
import { requireAgent } from './client.ts'
import { manifestBody, readManifestFile } from './manifest-file.ts'

const Fault = v.object({
  message: v.string(),
  line: v.nullable(v.number()),
  column: v.nullable(v.number()),
  key: v.nullable(v.string()),
})
const Checked = v.looseObject({ valid: v.boolean(), faults: v.array(Fault), warnings: v.array(v.string()) })

export default defineCommand({
  description: 'Check the manifest of an agent as the daemon would when the agent is made, and change nothing.',
  args: {
    manifest: {
      type: 'positional',
      required: true,
      description:
        `TOML file of the agent, or the signed one that ${commandLine('manifest sign <manifest>')} made; ` +
        '- reads standard input',
    },
    agent: {
      type: 'string',
      valueHint: 'agent',
      description: 'Name or id of the agent whose manifest it is to replace',
    },
    ...clientArgs,
  },
  examples: [
    ['svc agent check scout.toml', 'before it is made'],
    ['svc agent check scout.signed.json', 'its signature too'],
    ['svc agent check scout.toml --agent scout', 'before it replaces the manifest of scout'],
  ],
  async run(args) {
    const manifest = await readManifestFile(args.manifest)
    const connection = await connect(args)
    const checked = await callDaemon(connection, async (client) => {
      const agent = args.agent === undefined ? undefined : await requireAgent(client, args.agent)
      const body = { ...manifestBody(manifest), ...omitUndefined({ agent_id: agent?.id }) }
      return client.call('POST', '/api/agents/validate', Checked, { body })
    })
    for (const warning of checked.warnings) note(`svc: warning: ${escapeControls(warning)}`)
    if (args.json) printJson(checked)
    else if (checked.valid) print(`${args.manifest} is right`)
    else for (const fault of checked.faults) print(escapeControls(describe(args.manifest, fault)))
    return checked.valid ? exits.ok : exits.failed
  },
})

function describe(file: string, { message, line, key }: v.InferOutput<typeof Fault>): string {
  const place = line === null ? file : `${file}:${line}`
  return key === null ? `${place}: ${message}` : `${place}: ${key}: ${message}`
}
