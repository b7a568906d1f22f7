import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import type { Config } from '../config/load.ts'
import { HomeInUse, lockHome, readDaemonFile } from '../storage/lock.ts'
import { completeSwap } from '../storage/swap.ts'
import { clientArgs, command } from './command.ts'
import { ask, connect } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { databasePath, workOffline } from './offline.ts'
import { print, printJson } from './output.ts'
import { readSecret } from './secret-input.ts'
import { findPlace, loadSettings } from './settings.ts'
import { commandLine } from '../process/command-name.ts'

const FOR_EVER = 0
const Staged = v.looseObject({ restored_files: v.number(), created_at: v.string() })

export default command({
  description:
    'Put a backup, or a copy of the database, in the place of what is there. Everything is checked first; what was there is kept aside. A running daemon is asked to do it and starts anew.',
  args: {
    file: {
      type: 'positional',
      required: true,
      description: 'Name of a backup of the home, or a path to a backup (.zip) or to a copy of the database (.db)',
    },
    passphrase: {
      type: 'boolean',
      description: 'Ask for the passphrase the backup was made with: it was made on another machine',
    },
    ...clientArgs,
  },
  examples: [
    ['svc restore svc_backup_20260131T120000000Z.zip', 'the name as GET /api/backups and `svc backup` tell it'],
    ['svc restore ~/.svc/data/snapshots/svc-20260131T120000000Z.db', 'the database alone, after it was damaged'],
  ],
  async run(args) {
    const place = findPlace(args)
    const passphrase = args.passphrase === true ? await readSecret('Passphrase: ') : undefined
    if (args.url !== undefined || process.env['SVC_URL']?.trim() || readDaemonFile(place.home))
      return await byDaemon(args, passphrase)
    const { config } = await loadSettings(place)
    using _ = await lockHome(config.home_dir).catch((error: unknown) => {
      if (error instanceof HomeInUse) throw new Failure(exits.inUse, error.message, undefined, { cause: error })
      throw error
    })
    // An earlier one that was killed comes first.
    completeSwap(config.home_dir)
    const file = findFile(config, args.file)
    const facts = file.endsWith('.db')
      ? await restoreDatabase(config, file)
      : v.parse(Staged, await workOffline('backups', 'restore', { config, mayLack: true }, { file, passphrase }))
    const swapped = completeSwap(config.home_dir)
    const kept = swapped?.moves.find(({ from, keep }) => from !== null && existsSync(keep))?.keep
    if (args.json) printJson({ status: 'restored', file, kept: kept ?? null, ...facts })
    else
      print(
        `restored from ${file}${kept === undefined ? '' : `; what was there before is ${kept}`}\nstart it with ${commandLine('start')}`,
      )
    return exits.ok
  },
})

async function byDaemon(
  args: { readonly file: string; readonly json?: boolean | undefined } & Parameters<typeof connect>[0],
  passphrase: string | undefined,
): Promise<number> {
  if (!args.file.endsWith('.zip') || basename(args.file) !== args.file) {
    throw new Failure(
      exits.usage,
      'the daemon runs, and restores only backups of its own folder, by name',
      `stop it with ${commandLine('stop')} first, or copy the archive into the folder backups of the home`,
    )
  }
  const answer = await ask(await connect(args), (client) =>
    client.call('POST', '/api/restore', v.looseObject({ message: v.string(), previous: v.string() }), {
      timeoutMs: FOR_EVER,
      body: { filename: args.file, ...(passphrase === undefined ? {} : { passphrase }) },
    }),
  )
  if (args.json) printJson(answer)
  else print(`${answer.message}\nwhat was there until now is the backup ${answer.previous}`)
  return exits.ok
}

/** A name alone is one of the home's backups, or a file here. */
function findFile(config: Config, named: string): string {
  const places = [
    ...(basename(named) === named
      ? [join(config.home_dir, 'backups', named), join(dirname(databasePath(config)), 'snapshots', named)]
      : []),
    resolve(named),
  ]
  const found = places.find((place) => existsSync(place))
  if (found === undefined)
    throw new Failure(
      exits.notFound,
      `there is no file ${named}`,
      `backups lie in ${join(config.home_dir, 'backups')}, copies of the database in ${join(dirname(databasePath(config)), 'snapshots')}`,
    )
  if (!/\.(?:zip|db)$/.test(found))
    throw new Failure(exits.usage, `${named} is neither a backup (.zip) nor a copy of the database (.db)`)
  return found
}

/** The database alone: a copy is checked, and the damaged one kept beside it with its log. */
async function restoreDatabase(config: Config, file: string): Promise<Readonly<Record<string, unknown>>> {
  const { stageDatabase } = await import('../storage/stage.ts')
  try {
    return await stageDatabase(config.home_dir, databasePath(config), file)
  } catch (error) {
    throw new Failure(
      exits.failed,
      `${file} is not restored: ${error instanceof Error ? error.message : String(error)}`,
      'nothing was changed',
      { cause: error },
    )
  }
}
