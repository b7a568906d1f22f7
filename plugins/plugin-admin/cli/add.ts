import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  confirm,
  connect,
  defineCommand,
  exits,
  Failure,
  note,
  omitUndefined,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import type { Connection } from 'svc/cli'
import { exitCode, findOthers, showOthers, waitArg, waitForOthers } from './followers.ts'
import { withProof } from './proof.ts'

const Answer = v.looseObject({
  installed: v.boolean(),
  status: v.string(),
  name: v.string(),
  version: v.string(),
  path: v.string(),
  source: v.string(),
  hash: v.string(),
  signed_by: v.nullable(v.string()),
  permissions: v.array(v.string()),
  added_permissions: v.array(v.string()),
  dependencies: v.array(v.string()),
  deprecated: v.nullish(v.string()),
})
type Answer = v.InferOutput<typeof Answer>
const INSTALL_TIMEOUT_MS = 600_000

export default defineCommand({
  description:
    'Install a plugin into the running daemon: a package of the npm registry, a folder, an archive or an address. ' +
    'Shows what it may use and asks.',
  args: {
    source: {
      type: 'positional',
      required: true,
      description:
        'Package such as svc-weather or svc-weather@^1, folder, .tgz, or address of a .tgz or of a repository',
    },
    update: { type: 'boolean', description: 'Replace the plugin when it is installed' },
    yes: { type: 'boolean', alias: 'y', description: 'Accept what it may use without asking' },
    hash: { type: 'string', valueHint: 'hash', description: 'Hash the archive must have: sha512-… or sha256-…' },
    signature: {
      type: 'string',
      valueHint: 'text',
      description: 'Signature of the archive; taken from <archive>.sig when that file exists',
    },
    branch: { type: 'string', valueHint: 'name', description: 'Branch, tag or commit of the repository' },
    ...waitArg,
    ...clientArgs,
  },
  examples: [
    ['svc plugin add svc-weather', 'from the registry'],
    ['svc plugin add ./svc-weather-1.0.0.tgz --update', 'a new version from an archive'],
    ['svc plugin add ./weather --yes', 'a folder, without being asked'],
  ],
  async run(args) {
    const connection = await connect(args)
    const request = omitUndefined({ ...toSource(args.source, args.branch), hash: args.hash, update: args.update })
    const signature = args.signature ?? findSignature(args.source)
    const sent = { ...request, ...(signature === undefined ? {} : { signature }) }
    const found = await install(connection, { ...sent, dry_run: true })
    if (!args.yes) await ask(found, args.json === true)
    // The hash makes sure that what is installed is what was shown.
    const answer = await install(connection, { ...sent, hash: found.hash, accept: found.permissions })
    if (!args.json) print(`plugin "${answer.name}" ${answer.version} ${answer.status}`)
    const others = await (args.wait ? waitForOthers : findOthers)(connection, answer.name)
    if (args.json) printJson({ ...answer, daemons: others })
    else showOthers(others)
    return args.wait ? exitCode(others) : exits.ok
  },
})

function install(connection: Connection, body: object): Promise<Answer> {
  return callDaemon(connection, (client) =>
    withProof(connection, (proof) =>
      client.call('POST', '/api/plugins/install', Answer, {
        body: { ...body, ...proof },
        timeoutMs: INSTALL_TIMEOUT_MS,
      }),
    ),
  )
}

/** A word that names a file or folder is one; every other word is a package. */
function toSource(text: string, branch: string | undefined): object {
  if (/^https?:\/\//.test(text)) {
    const isRepository = /^https:\/\/github\.com\/[^/]+\/[^/]+\/?$/.test(text)
    return isRepository ? omitUndefined({ source: 'git', url: text, branch }) : { source: 'url', url: text }
  }
  if (existsSync(text) || /^\.{0,2}\/|\.t(?:ar\.)?gz$/.test(text)) return { source: 'local', path: resolve(text) }
  return { source: 'registry', name: text }
}

function findSignature(source: string): string | undefined {
  const file = `${source}.sig`
  return existsSync(file) ? readFileSync(file).toString('base64') : undefined
}

async function ask(found: Answer, isJson: boolean): Promise<void> {
  note(describe(found))
  const isAccepted = await confirm('Install it? [y/N] ', isJson)
  if (isAccepted === undefined)
    throw new Failure(exits.refused, `"${found.name}" was not installed: nobody was there to accept`, 'add --yes')
  if (!isAccepted) throw new Failure(exits.refused, `"${found.name}" was not installed`)
}

function describe(found: Answer): string {
  const { added_permissions: added, permissions, dependencies, deprecated } = found
  return renderFacts([
    ['plugin', `${found.name} ${found.version}`],
    ['from', found.source],
    ['hash', found.hash],
    ['signed by', found.signed_by ?? 'nobody'],
    ['may use', permissions.join(', ') || 'nothing'],
    ['not accepted yet', added.join(', ') || 'nothing'],
    ['dependencies', dependencies.join(', ') || 'none'],
    ...(deprecated == null ? [] : [['deprecated', deprecated] as const]),
  ])
}
