import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  databasePath,
  exits,
  Failure,
  locateHome,
  homeArgs,
  loadSettings,
  note,
  print,
  printJson,
  renderFacts,
  workOffline,
} from 'svc/cli'

const Report = v.looseObject({
  status: v.picklist(['valid', 'invalid']),
  chain_length: v.number(),
  first_entry: v.nullable(v.number()),
  last_entry: v.nullable(v.number()),
  first_invalid_id: v.optional(v.number()),
  first_invalid_writer: v.optional(v.string()),
  first_invalid_seq: v.optional(v.number()),
  reason: v.optional(v.string()),
  anchor: v.string(),
  checkpoint: v.nullable(v.looseObject({ size: v.number(), timestamp: v.string(), key_id: v.string() })),
  origin: v.optional(v.looseObject({ entry_id: v.number() })),
  writers: v.optional(v.array(v.looseObject({ writer: v.string(), entries: v.number(), last_seq: v.number() }))),
  // The daemon checks them always.
  signatures: v.optional(v.boolean(), true),
})
type Report = v.InferOutput<typeof Report>

export default defineCommand({
  description:
    'Check the audit trail in the database itself, whether or not a daemon runs. Nothing is changed. ' +
    'A database on a server is verified by the daemon of the home. The exit code is 1 when it was tampered with.',
  args: {
    file: {
      type: 'positional',
      required: false,
      description: 'A database file, such as a copy or one out of a backup (default: that of the home)',
    },
    ...homeArgs,
  },
  examples: [
    ['svc audit verify', 'the trail of the home, with its anchor and signatures'],
    ['svc audit verify ~/copy.db', 'a copy: the chain and its checkpoints, without the keys that only the home has'],
  ],
  async run(args) {
    const report = await verify(args)
    if (args.json) printJson(report)
    else printReport(report, args.file === undefined)
    return report.status === 'valid' ? exits.ok : exits.failed
  },
})

async function verify(args: { readonly file?: string | undefined } & Parameters<typeof locateHome>[0]) {
  const { config } = await loadSettings(locateHome(args))
  if (args.file === undefined && !config.database_url.startsWith('sqlite:'))
    return await callDaemon(await connect(args), (client) => client.call('GET', '/api/audit/verify', Report))
  const file = args.file === undefined ? databasePath(config) : resolve(args.file)
  if (!existsSync(file))
    throw new Failure(
      exits.notFound,
      `there is no database ${file}`,
      args.file === undefined ? 'name the home with --home, or the file' : undefined,
    )
  return v.parse(Report, await workOffline('audit', 'verify', { config, file }, { bare: args.file !== undefined }))
}

function printReport(report: Report, isHome: boolean): void {
  const { status, checkpoint, origin, first_entry: first, last_entry: last } = report
  const signature = report.signatures
    ? 'signature checked'
    : 'signature not checked: the key is in the vault of the home'
  print(
    renderFacts([
      ['status', status],
      ['entries', first === null ? '0' : `${report.chain_length} (${first} to ${last})`],
      ...(origin ? [['dropped', `1 to ${origin.entry_id}, as they were older than they are kept`] as const] : []),
      [
        'checkpoint',
        checkpoint === null
          ? 'none'
          : `${checkpoint.size} entries, ${checkpoint.timestamp}, key ${checkpoint.key_id}, ${signature}`,
      ],
      ...(report.writers ?? []).map(
        ({ writer, entries, last_seq: seq }) =>
          ['writer', `${writer}: ${entries} entries, the newest is its ${seq}.`] as const,
      ),
      ['anchor', isHome ? report.anchor : 'not checked: it belongs to the home'],
    ]),
  )
  if (status === 'valid') return
  const { first_invalid_id: id, first_invalid_writer: writer, first_invalid_seq: seq } = report
  const place = id === undefined ? '' : `; the first bad entry is ${id}`
  const whose = writer === undefined ? '' : `; it shows at entry ${seq} of writer ${writer}`
  note(`svc: ${report.reason ?? 'the trail does not verify'}${place}${whose}`)
  if (report.reason?.includes('anchor') === true)
    note(`  -> if that is known and meant, such as after a restore: ${commandLine('audit reset-anchor')}`)
}
