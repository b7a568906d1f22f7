import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  clientArgs,
  commandLine,
  defineCommand,
  exits,
  Failure,
  loadSettings,
  locateHome,
  note,
  print,
  printJson,
  readJson,
  rehearseVersion,
  renderTable,
} from 'svc/cli'
import type { ClientArgs, Rehearsal } from 'svc/cli'
import * as v from 'valibot'
import { RECORDED_REQUESTS, RecordedRequests } from '../../system/contract.ts'
import type { RecordedRequest } from '../../system/contract.ts'

/**
 * Plugins that act on what waits in a database: turns, jobs, messages, programs. Those that need one of them are not
 * loaded either; the tables of all of them are migrated.
 */
const ACTING = [
  'queue',
  'chat',
  'channels',
  'webhooks',
  'mcp',
  'a2a',
  'peers',
  'pairing',
  'cluster',
  'browser',
  'shell',
]

export default defineCommand({
  description:
    'Try this version of svc on a copy of the home: the copy is migrated and checked, a daemon answers read-only requests ' +
    'from it without a port, without the network and without the plugins that act, with the plugins of the home, and its answers are compared with ' +
    'those of the daemon that runs. The home itself is only read.',
  args: {
    rehearse: { type: 'boolean', description: 'Try it on a copy; nothing else is done yet' },
    'database-url': {
      type: 'string',
      valueHint: 'url',
      description: 'Empty PostgreSQL database that gets the copy of a home on a server, and keeps it',
    },
    ...clientArgs,
  },
  examples: [['svc upgrade --rehearse', 'before the daemon is started with a new version']],
  async run(args) {
    if (args.rehearse !== true)
      throw new Failure(
        exits.usage,
        'an upgrade is a new version of the package and a restart: the start migrates the home, after a copy of it',
        `try it first: ${commandLine('upgrade --rehearse')}`,
      )
    const found = await rehearseVersion(args, {
      off: ACTING,
      recorded: await readRecorded(args),
      scratchUrl: args['database-url'],
    })
    if (args.json) printJson(found)
    else report(found)
    return found.problems.length === 0 ? exits.ok : exits.failed
  },
})

function report(found: Rehearsal): void {
  print(`Migrations of ${found.migrated.length} plugins: ${found.migrations} applied to the copy.`)
  for (const problem of found.problems) print(`problem: ${problem}`)
  if (found.differences.length > 0)
    print(
      renderTable(
        ['REQUEST', 'DIFFERENCE'],
        found.differences.map(({ path, what }) => [`GET ${path}`, what]),
      ),
    )
  const beside = found.isCompared
    ? 'compared with the running daemon'
    : 'no daemon runs: recorded ones are compared with what it answered'
  print(
    `${found.requests} requests, ${found.recorded} of them recorded, ${beside}: ${found.differences.length} differ.`,
  )
  if (found.recorded === 0)
    note(
      'For recent requests to be asked again too, set recorded_requests = 100 below [plugins.system] some days before.',
    )
  print(found.problems.length === 0 ? 'This version opens the home.' : 'Do not upgrade: the home is as it was.')
}

/** What the daemon of this home recorded, if it does; see `plugins.system.recorded_requests`. */
async function readRecorded(args: ClientArgs): Promise<readonly RecordedRequest[]> {
  const { config } = await loadSettings(locateHome(args))
  const file = join(config.data_dir, RECORDED_REQUESTS)
  if (!existsSync(file)) return []
  try {
    return v.parse(RecordedRequests, readJson(await readFile(file, 'utf8')))
  } catch (error) {
    note(`warning: ${file} cannot be read, and no recorded request is asked again: ${String(error)}`)
    return []
  }
}
