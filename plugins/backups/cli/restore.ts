import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  databasePath,
  defineCommand,
  exits,
  Failure,
  hasDaemon,
  locateHome,
  omitUndefined,
  openStoppedHome,
  print,
  printJson,
} from 'svc/cli'
import type { ClientArgs, Config } from 'svc/cli'
import { readPassphrase } from './passphrase.ts'

/** A restore of much data takes long; the daemon reports a failure itself. */
const NO_TIMEOUT = 0
const Staged = v.looseObject({ restored_files: v.number(), created_at: v.string() })

export default defineCommand({
  description:
    'Restore a backup, or a copy of the database. Everything is checked first; ' +
    'the present data is kept. A running daemon does it and restarts.',
  args: {
    file: {
      type: 'positional',
      required: true,
      description: 'Name of a backup of the home, or a path to a backup (.zip) or to a copy of the database (.db)',
    },
    passphrase: {
      type: 'boolean',
      description: 'Read the passphrase of a backup of another machine: asked for, or the first line of standard input',
    },
    ...clientArgs,
  },
  examples: [
    ['svc restore svc_backup_20260131T120000000Z.zip', 'the name as in GET /api/backups'],
    ['svc restore ~/.svc/data/snapshots/svc-20260131T120000000Z.db', 'the database alone, after it was damaged'],
  ],
  async run(args) {
    const passphrase =
      args.passphrase === true ? await readPassphrase(`restore ${args.file} --passphrase`, 1) : undefined
    if (await hasDaemon(args)) return await restoreByDaemon(args, passphrase)
    using home = await openStoppedHome(locateHome(args))
    const file = findFile(home.config, args.file)
    const facts = file.endsWith('.db')
      ? await home.stageDatabase(file)
      : v.parse(Staged, await home.work('backups', 'restore', { file, passphrase }, 'optional'))
    const kept = home.completeReplacement()
    if (args.json) printJson({ status: 'restored', file, kept: kept ?? null, ...facts })
    else {
      const before = kept === undefined ? '' : `; the previous data is ${kept}`
      print(`restored from ${file}${before}\nstart it with ${commandLine('start')}`)
    }
    return exits.ok
  },
})

async function restoreByDaemon(
  args: { readonly file: string; readonly json?: boolean | undefined } & ClientArgs,
  passphrase: string | undefined,
): Promise<number> {
  if (!args.file.endsWith('.zip') || basename(args.file) !== args.file) {
    throw new Failure(
      exits.usage,
      'the daemon runs, and restores only backups of its own folder, by name',
      `stop it with ${commandLine('stop')} first, or copy the archive into the folder backups of the home; a dump of a PostgreSQL server is restored with pg_restore (docs/backup.md, PostgreSQL)`,
    )
  }
  const answer = await callDaemon(await connect(args), (client) =>
    client.call('POST', '/api/restore', v.looseObject({ message: v.string(), previous: v.string() }), {
      timeoutMs: NO_TIMEOUT,
      body: omitUndefined({ filename: args.file, passphrase }),
    }),
  )
  if (args.json) printJson(answer)
  else print(`${answer.message}\nwhat was there until now is the backup ${answer.previous}`)
  return exits.ok
}

/** A name alone is one of the home's backups, or a file here. */
function findFile(config: Config, named: string): string {
  const backups = join(config.home_dir, 'backups')
  const copies = join(dirname(databasePath(config)), 'snapshots')
  const places = [...(basename(named) === named ? [join(backups, named), join(copies, named)] : []), resolve(named)]
  const found = places.find((place) => existsSync(place))
  if (found === undefined)
    throw new Failure(
      exits.notFound,
      `there is no file ${named}`,
      `backups lie in ${backups}, copies of the database in ${copies}`,
    )
  if (!/\.(?:zip|db)$/.test(found))
    throw new Failure(exits.usage, `${named} is neither a backup (.zip) nor a copy of the database (.db)`)
  return found
}
