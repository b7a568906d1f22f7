import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as v from 'valibot'
import {
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
  reason: v.optional(v.string()),
  anchor: v.string(),
  checkpoint: v.nullable(v.looseObject({ size: v.number(), timestamp: v.string(), key_id: v.string() })),
  origin: v.optional(v.looseObject({ entry_id: v.number() })),
  signatures: v.boolean(),
})

export default defineCommand({
  description:
    'Check the audit trail in the database itself, whether or not a daemon runs. Nothing is changed. ' +
    'The exit code is 1 when it was tampered with.',
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
    const { config } = await loadSettings(locateHome(args))
    const file = args.file === undefined ? databasePath(config) : resolve(args.file)
    if (!existsSync(file))
      throw new Failure(
        exits.notFound,
        `there is no database ${file}`,
        args.file === undefined ? 'name the home with --home, or the file' : undefined,
      )
    const report = v.parse(
      Report,
      await workOffline('audit', 'verify', { config, file }, { bare: args.file !== undefined }),
    )
    if (args.json) printJson(report)
    else printReport(report, args.file === undefined)
    return report.status === 'valid' ? exits.ok : exits.failed
  },
})

function printReport(report: v.InferOutput<typeof Report>, isHome: boolean): void {
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
      ['anchor', isHome ? report.anchor : 'not checked: it belongs to the home'],
    ]),
  )
  if (status === 'valid') return
  const place = report.first_invalid_id === undefined ? '' : `; the first bad entry is ${report.first_invalid_id}`
  note(`svc: ${report.reason ?? 'the trail does not verify'}${place}`)
}
