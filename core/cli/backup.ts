import * as v from 'valibot'
import { readBuild } from '../build/info.ts'
import { HomeInUse, lockHome, readDaemonFile } from '../storage/lock.ts'
import { completeSwap } from '../storage/swap.ts'
import { clientArgs, command } from './command.ts'
import { ask, connect } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { workOffline } from './offline.ts'
import { print, printJson } from './output.ts'
import { readSecret } from './secret-input.ts'
import { findPlace, loadSettings } from './settings.ts'

const Made = v.looseObject({ filename: v.string(), path: v.string(), size_bytes: v.number() })
/** A backup of much data takes long; the daemon says when it has failed. */
const FOR_EVER = 0

export default command({
  description:
    'Make a backup of everything: by the running daemon, which goes on meanwhile, or without one. Secrets in it stay sealed with the key of the vault, which is not in it.',
  args: {
    passphrase: {
      type: 'boolean',
      description: 'Put the key of the vault into it, sealed with a passphrase that is asked for: for another machine',
    },
    ...clientArgs,
  },
  examples: [
    ['svc backup', 'into the folder backups of the home'],
    ['svc backup --passphrase', 'one that another machine can use alone'],
  ],
  async run(args) {
    const passphrase = args.passphrase === true ? await readSecret('Passphrase: ') : undefined
    const place = findPlace(args)
    const made = v.parse(
      Made,
      args.url !== undefined || process.env['SVC_URL']?.trim() || readDaemonFile(place.home)
        ? await ask(await connect(args), (client) =>
            client.call('POST', '/api/backup', Made, {
              timeoutMs: FOR_EVER,
              body: passphrase === undefined ? {} : { passphrase },
            }),
          )
        : await alone(args, passphrase),
    )
    if (args.json) printJson(made)
    else print(`${made.path} (${made.size_bytes} bytes)`)
    return exits.ok
  },
})

async function alone(args: Parameters<typeof findPlace>[0], passphrase: string | undefined): Promise<unknown> {
  const { config } = await loadSettings(findPlace(args))
  using _ = await lockHome(config.home_dir).catch((error: unknown) => {
    if (error instanceof HomeInUse) throw new Failure(exits.inUse, error.message, undefined, { cause: error })
    throw error
  })
  // A restore that was killed comes first.
  completeSwap(config.home_dir)
  return await workOffline('backups', 'create', { config }, { version: readBuild().version, passphrase })
}
