import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  confirm,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  note,
  omitUndefined,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import type { Connection } from 'svc/cli'

const Answer = v.looseObject({
  status: v.string(),
  skill: v.string(),
  version: v.string(),
  description: v.string(),
  sha256: v.string(),
  signed_by: v.nullable(v.string()),
  permissions: v.array(v.string()),
  warnings: v.array(v.looseObject({ severity: v.string(), message: v.string() })),
  converted_from: v.optional(v.nullable(v.string())),
  tool_translations: v.optional(v.array(v.looseObject({ from: v.string(), to: v.string() })), []),
})
type Answer = v.InferOutput<typeof Answer>
const TIMEOUT_MS = 120_000

export default defineCommand({
  description: 'Install a skill from a folder, an archive, an https address or a hub. Shows what it may use and asks.',
  args: {
    source: {
      type: 'positional',
      required: true,
      description: 'Folder, .tgz, .zip, SKILL.md, https address of one, hub:slug or marketplace:owner/repository',
    },
    update: { type: 'boolean', description: 'Replace the skill when it is installed' },
    yes: { type: 'boolean', alias: 'y', description: 'Accept what it may use without asking' },
    sha256: { type: 'string', valueHint: 'digits', description: 'SHA-256 that the archive must have' },
    signature: {
      type: 'string',
      valueHint: 'text',
      description: 'Of the archive; taken from <source>.sig when that exists',
    },
    ...clientArgs,
  },
  examples: [
    ['svc skill install ./release-notes', 'a folder'],
    ['svc skill install https://example.org/release-notes.tgz --update', 'a new version'],
    ['svc skill install hub:@ada/gifgrep', 'one of ClawHub'],
    ['svc skill install marketplace:ada/skills/gifgrep', 'a folder of a public repository'],
  ],
  async run(args) {
    const connection = await connect(args)
    const isAddress = /^(?:https?|hub|marketplace):/i.test(args.source)
    const body = omitUndefined({
      source: isAddress ? args.source : resolve(args.source),
      update: args.update,
      sha256: args.sha256,
      signature: args.signature ?? (isAddress ? undefined : findSignature(args.source)),
    })
    const found = await install(connection, { ...body, dry_run: true })
    if (!args.yes) await ask(found, args.json === true)
    // The hash makes sure that what is installed is what was shown.
    const answer = await install(connection, { ...body, sha256: found.sha256, accept: found.permissions })
    if (args.json) printJson(answer)
    else print(escapeControls(`skill "${answer.skill}" ${answer.version} ${answer.status}`))
    return exits.ok
  },
})

const install = (connection: Connection, body: object): Promise<Answer> =>
  callDaemon(connection, (client) =>
    client.call('POST', '/api/skills/install', Answer, { body, timeoutMs: TIMEOUT_MS }),
  )

function findSignature(source: string): string | undefined {
  const file = `${source}.sig`
  return existsSync(file) ? readFileSync(file).toString('base64') : undefined
}

async function ask(found: Answer, isJson: boolean): Promise<void> {
  const { skill, version, description, permissions, sha256, signed_by: signer, warnings } = found
  const { tool_translations: translations } = found
  note(
    renderFacts([
      ['skill', `${skill} ${version}`],
      ['for', description],
      ['sha256', sha256],
      ['signed by', signer ?? 'nobody'],
      ['may use', permissions.join(', ') || 'nothing'],
      ...(translations.length === 0
        ? []
        : [['tools', translations.map(({ from, to }) => `${from} is ${to}`).join(', ')] as const]),
      ...warnings.map(({ severity, message }) => [severity, message] as const),
    ]),
  )
  const isAccepted = await confirm('Install it? [y/N] ', isJson)
  if (isAccepted === undefined)
    throw new Failure(exits.refused, `"${skill}" was not installed: nobody was there to accept`, 'add --yes')
  if (!isAccepted) throw new Failure(exits.refused, `"${skill}" was not installed`)
}
