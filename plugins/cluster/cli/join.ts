import { resolve } from 'node:path'
import { commandLine, defineCommand, exits, homeArgs, joinDatabase, locateHome, print, printJson } from 'svc/cli'

export default defineCommand({
  description:
    'Set this home up for a PostgreSQL database that other daemons use: try the address and the key of the vault, and ' +
    'write both down. Nothing is written when one of them is wrong.',
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
    const joined = await joinDatabase(locateHome(args), {
      url: args.url,
      keyFile: file === undefined ? undefined : resolve(file),
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
