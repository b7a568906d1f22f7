import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  DaemonRefusal,
  defineCommand,
  exits,
  Failure,
  omitUndefined,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import type { ClientArgs } from 'svc/cli'

const Source = v.object({
  type: v.string(),
  path: v.string(),
  version: v.string(),
  agents_found: v.number(),
  skills_found: v.number(),
})
const Answer = v.looseObject({
  imported_count: v.number(),
  unchanged_count: v.number(),
  skipped_count: v.number(),
  report_markdown: v.string(),
  reports: v.array(v.string()),
})
/** A move of much data takes long; the daemon reports a failure itself. */
const NO_TIMEOUT = 0
const SYSTEMS: ReadonlySet<string> = new Set(['openclaw', 'openfang', 'librefang'])

export default defineCommand({
  description:
    'Take over agents, files, conversations, skills, channels, workflows and schedules of another system on the machine ' +
    'of the daemon. Nothing here is overwritten, nothing there is changed, and what came over before does not come over ' +
    'again. Channels, schedules and triggers come over disabled.',
  args: {
    path: { type: 'positional', required: false, description: 'Folder of the other system; found by itself without' },
    from: { type: 'string', description: 'openclaw, openfang or librefang', valueHint: 'system' },
    'dry-run': { type: 'boolean', description: 'Say what would come over, and make nothing' },
    ...clientArgs,
  },
  examples: [
    ['svc migrate', 'which homes of other systems there are'],
    ['svc migrate --from openclaw --dry-run', 'what would come over'],
    ['svc migrate ~/.openclaw', 'take it over; the report is kept in the home'],
  ],
  async run(args) {
    if (args.path !== undefined && args.from !== undefined)
      throw new Failure(exits.usage, 'name a folder or --from, not both: of which system a folder is, is seen in it')
    const source = args.path === undefined ? args.from : resolve(args.path)
    if (source === undefined) return await listSources(args)
    const answer = await callDaemon(await connect(args), (client) =>
      client
        .call('POST', '/api/migrate', Answer, {
          timeoutMs: NO_TIMEOUT,
          body: omitUndefined({ source, dry_run: args['dry-run'] }),
        })
        .catch((error: unknown) => {
          if (!(error instanceof DaemonRefusal) || error.status !== 400) throw error
          const isMissing = args.path === undefined ? SYSTEMS.has(source.toLowerCase()) : !existsSync(source)
          throw new Failure(isMissing ? exits.notFound : exits.usage, error.message, undefined, { cause: error })
        }),
    )
    if (args.json) printJson(answer)
    else {
      print(answer.report_markdown.trimEnd())
      const [report] = answer.reports
      if (report !== undefined) print(`\nThis report is ${report}.`)
    }
    return exits.ok
  },
})

async function listSources(args: ClientArgs & { readonly json?: boolean | undefined }): Promise<number> {
  const { sources } = await callDaemon(await connect(args), (client) =>
    client.call('GET', '/api/migrate/detect', v.object({ sources: v.array(Source) })),
  )
  if (args.json) printJson({ sources })
  else if (sources.length === 0)
    throw new Failure(
      exits.notFound,
      'no home of OpenClaw, OpenFang or LibreFang is found for the user of the daemon',
      `name its folder: ${commandLine('migrate /path/to/.openclaw --dry-run')}`,
    )
  else {
    const rows = sources.map(({ type, path, agents_found: agents, skills_found: skills }) => [
      type,
      path,
      String(agents),
      String(skills),
    ])
    print(renderTable(['SYSTEM', 'FOLDER', 'AGENTS', 'SKILLS'], rows))
    print(`${commandLine(`migrate ${sources[0]?.path ?? ''} --dry-run`)} says what would come over.`)
  }
  return exits.ok
}
