import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  confirm,
  connect,
  DaemonRefusal,
  defineCommand,
  exits,
  Failure,
  note,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import type { Connection } from 'svc/cli'
import { exitCode, findOthers, showOthers, waitArg, waitForOthers } from './followers.ts'
import { withProof } from './proof.ts'

const Data = v.looseObject({
  tables: v.array(v.looseObject({ name: v.string(), rows: v.number() })),
  values: v.number(),
  secrets: v.array(v.string()),
})
const Details = v.looseObject({ source: v.string(), installed: v.nullish(v.unknown()) })
const Answer = v.looseObject({ removed: v.boolean(), data: v.nullish(Data) })
type Answer = v.InferOutput<typeof Answer>

export default defineCommand({
  description:
    'Unload a plugin and remove its files, after a question when it was written here and not installed. Running calls ' +
    'end first. Its tables, stored values and secrets stay, and ' +
    'are found again when it is installed again, unless --delete-data deletes them.',
  args: {
    plugin: { type: 'positional', required: true, description: 'Name of the plugin' },
    force: { type: 'boolean', description: 'Also when other plugins need it' },
    'delete-data': {
      type: 'boolean',
      description: 'Delete its tables, stored values and secrets for good; shows them and asks',
    },
    yes: {
      type: 'boolean',
      alias: 'y',
      description: 'Delete its data, and code that was written here, without asking',
    },
    ...waitArg,
    ...clientArgs,
  },
  examples: [
    ['svc plugin remove weather', 'while the daemon serves'],
    ['svc plugin remove weather --delete-data', 'nothing of it stays; also later, when the plugin is removed already'],
  ],
  async run(args) {
    const connection = await connect(args)
    const deletesData = args['delete-data'] === true
    const body = { name: args.plugin, force: args.force ?? false, delete_data: deletesData }
    if (!args.yes) await askForCode(connection, args)
    if (deletesData && !args.yes) await ask(args.plugin, await uninstall(connection, { ...body, dry_run: true }), args)
    const answer = await uninstall(connection, body)
    if (!args.json) print(`plugin "${args.plugin}" removed${deletesData ? ', and its data deleted' : ''}`)
    const others = await (args.wait ? waitForOthers : findOthers)(connection, args.plugin)
    if (args.json) printJson({ ...answer, daemons: others })
    else showOthers(others)
    return args.wait ? exitCode(others) : exits.ok
  },
})

function uninstall(connection: Connection, body: object): Promise<Answer> {
  return callDaemon(connection, (client) =>
    withProof(connection, (proof) =>
      client.call('POST', '/api/plugins/uninstall', Answer, { body: { ...body, ...proof }, timeoutMs: 120_000 }),
    ),
  )
}

/** What was installed can be installed again; what somebody wrote in the home may be nowhere else. */
async function askForCode(
  connection: Connection,
  { plugin, json }: { readonly plugin: string; readonly json?: boolean | undefined },
): Promise<void> {
  const path = `/api/plugins/${encodeURIComponent(plugin)}`
  const found = await callDaemon(connection, (client) =>
    client.call('GET', path, Details).catch((error: unknown) => {
      // The data of a plugin can be deleted when it is removed already.
      if (error instanceof DaemonRefusal && error.status === 404) return undefined
      throw error
    }),
  )
  if (!found || found.source === 'built-in' || (found.installed ?? undefined) !== undefined) return
  const isSure = await confirm(
    `Delete ${found.source}? It was not installed, so this is the code itself. [y/N] `,
    json === true,
  )
  decide(plugin, isSure)
}

function decide(name: string, isSure: boolean | undefined): void {
  if (isSure === undefined)
    throw new Failure(exits.refused, `"${name}" was not removed: nobody was there to confirm`, 'add --yes')
  if (!isSure) throw new Failure(exits.refused, `"${name}" was not removed`)
}

async function ask(name: string, { data }: Answer, { json }: { readonly json?: boolean | undefined }): Promise<void> {
  const tables = (data?.tables ?? []).map((table) => `${table.name} (${table.rows} rows)`)
  note(
    renderFacts([
      ['plugin', name],
      ['tables', tables.join(', ') || 'none'],
      ['stored values', String(data?.values ?? 0)],
      ['secrets', data?.secrets.join(', ') || 'none'],
    ]),
  )
  decide(name, await confirm(`Delete all of this for good? [y/N] `, json === true))
}
