import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  hasDaemon,
  locateHome,
  omitUndefined,
  openStoppedHome,
  print,
  printJson,
} from 'svc/cli'
import type { ClientArgs } from 'svc/cli'
import { readPassphrase } from './passphrase.ts'

const Created = v.looseObject({ filename: v.string(), path: v.string(), size_bytes: v.number() })
/** As for `POST /api/backup`, which a command without a daemon does not ask. */
const MIN_PASSPHRASE_CHARS = 12
/** A backup of much data takes long; the daemon reports a failure itself. */
const NO_TIMEOUT = 0

export default defineCommand({
  description:
    'Make a backup of everything: through the running daemon, which keeps working, or without one. ' +
    'Secrets in it stay sealed with the key of the vault, which is not in it.',
  args: {
    passphrase: {
      type: 'boolean',
      description:
        'Include the key of the vault, encrypted with a passphrase: asked for, or the first line of standard input',
    },
    ...clientArgs,
  },
  examples: [
    ['svc backup', 'into the folder backups of the home'],
    ['svc backup --passphrase', 'one that another machine can use alone'],
  ],
  async run(args) {
    const passphrase =
      args.passphrase === true ? await readPassphrase('backup --passphrase', MIN_PASSPHRASE_CHARS) : undefined
    const backup = (await hasDaemon(args))
      ? await createByDaemon(args, passphrase)
      : await createOffline(args, passphrase)
    if (args.json) printJson(backup)
    else print(`${backup.path} (${backup.size_bytes} bytes)`)
    return exits.ok
  },
})

async function createByDaemon(
  args: ClientArgs,
  passphrase: string | undefined,
): Promise<v.InferOutput<typeof Created>> {
  return await callDaemon(await connect(args), (client) =>
    client.call('POST', '/api/backup', Created, { timeoutMs: NO_TIMEOUT, body: omitUndefined({ passphrase }) }),
  )
}
async function createOffline(args: ClientArgs, passphrase: string | undefined): Promise<v.InferOutput<typeof Created>> {
  using home = await openStoppedHome(locateHome(args))
  return v.parse(Created, await home.work('backups', 'create', { version: home.version, passphrase }))
}
