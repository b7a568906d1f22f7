import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  commandLine,
  defineCommand,
  exits,
  Failure,
  homeArgs,
  joinDatabase,
  loadSettings,
  locateHome,
  print,
  printJson,
  workOffline,
} from 'svc/cli'

const Found = v.object({ problem: v.optional(v.string()), advice: v.optional(v.string()) })

export default defineCommand({
  description:
    'Set this home up for a PostgreSQL database that other daemons use: try the address and the key of the vault, ' +
    'compare where files of agents lie, and write address and key down. Nothing is written when one of them is wrong.',
  args: {
    url: {
      type: 'positional',
      required: false,
      description: 'database_url of the other daemons; better in the variable SVC_DATABASE_URL, which no list shows',
    },
    'vault-key-file': {
      type: 'string',
      valueHint: 'file',
      description: 'A file with the key of the vault (default: SVC_VAULT_KEY, else it is asked for or read from stdin)',
    },
    ...homeArgs,
  },
  examples: [
    ['svc cluster join postgres://svc@db.example.org/svc', 'asks for the key of the vault'],
    ['svc cluster join postgres://svc@db/svc --vault-key-file /run/secrets/vault', 'with a mounted key'],
    ['ssh first cat .svc/vault.key | svc cluster join postgres://svc@db/svc', 'with the key of another home'],
  ],
  async run(args) {
    const file = args['vault-key-file']
    const location = locateHome(args)
    const joined = await joinDatabase(location, {
      url: args.url,
      keyFile: file === undefined ? undefined : resolve(file),
      async check(sql) {
        const { config } = await loadSettings(location)
        const found = await workOffline('files', 'join', { config, sql, withoutSecrets: true }, {})
        const { problem, advice } = v.parse(Found, found)
        if (problem !== undefined) throw new Failure(exits.refused, problem, `nothing was written; ${advice ?? ''}`)
      },
    })
    if (args.json) printJson(joined)
    else {
      print(`The database answers, and the key opens its vault. ${joined.written.join(', ') || 'Nothing'} written.`)
      for (const need of joined.needed) print(need)
      print(`Now: ${commandLine('start')}, then ${commandLine('doctor')} compares the configurations.`)
    }
    return exits.ok
  },
})
