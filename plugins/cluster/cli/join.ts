import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  commandLine,
  defineCommand,
  escapeControls,
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

const Agreement = v.object({ key: v.string(), value: v.string() })
const Compared = v.object({ problem: v.optional(v.string()), differences: v.array(v.string()) })
const Found = v.object({ problem: v.optional(v.string()), advice: v.optional(v.string()) })

export default defineCommand({
  description:
    'Set this home up for a PostgreSQL database that other daemons use: try the address and the key of the vault, ' +
    'compare where files of agents lie and what else has to be alike, and write address and key down. Nothing is written when one of them is wrong.',
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
    let differences: readonly string[] = []
    const joined = await joinDatabase(location, {
      url: args.url,
      keyFile: file === undefined ? undefined : resolve(file),
      async check(sql, digests) {
        const { config } = await loadSettings(location)
        const found = await workOffline('files', 'join', { config, sql, withoutSecrets: true }, {})
        const { problem, advice } = v.parse(Found, found)
        if (problem !== undefined) throw new Failure(exits.refused, problem, `nothing was written; ${advice ?? ''}`)
        const agreement = await workOffline('queue', 'agreement', { config, sql, withoutSecrets: true }, {})
        const budget = await workOffline('budgets', 'section', { config, sql, withoutSecrets: true }, {})
        const options = {
          ...v.parse(Agreement, agreement),
          budget: JSON.stringify(Object.fromEntries(await digests('cluster-configuration', { budget }))),
        }
        const compared = v.parse(
          Compared,
          await workOffline('cluster', 'join', { config, sql, withoutSecrets: true }, options),
        )
        if (compared.problem !== undefined)
          throw new Failure(exits.refused, compared.problem, 'nothing was written; set it as the others have it')
        differences = compared.differences
      },
    })
    if (args.json) printJson({ ...joined, differences })
    else {
      print(`The database answers, and the key opens its vault. ${joined.written.join(', ') || 'Nothing'} written.`)
      for (const need of joined.needed) print(need)
      for (const difference of differences) print(escapeControls(`Not as in the others: ${difference}.`))
      print(`Now: ${commandLine('start')}, then ${commandLine('doctor')} compares the configurations.`)
    }
    return exits.ok
  },
})
