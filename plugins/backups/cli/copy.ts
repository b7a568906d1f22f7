import * as v from 'valibot'
import { commandLine, copyDatabase, defineCommand, exits, homeArgs, locateHome, note, print, printJson } from 'svc/cli'

const Verdict = v.looseObject({ status: v.string(), chain_length: v.number() })

export default defineCommand({
  description:
    'Copy the SQLite database of this home, whose daemon is stopped, into an empty PostgreSQL database: every table, in ' +
    'one transaction. Rows are counted and the audit trail is verified before anything is kept; the file stays as it is.',
  args: {
    url: {
      type: 'positional',
      required: true,
      description: 'Address of an empty database; a password is better in the variable PGPASSWORD, which no list shows',
    },
    ...homeArgs,
  },
  examples: [['svc database copy postgres://svc@db.example.org/svc', 'into a database that `createdb` has just made']],
  async run(args) {
    const { file, tables, leftOut, verdicts } = await copyDatabase(locateHome(args), {
      url: args.url,
      verify: [{ plugin: 'audit', work: 'verify' }],
    })
    const [{ status, chain_length: entries }] = v.parse(v.tuple([Verdict]), verdicts)
    const rows = [...tables.values()].reduce((sum, count) => sum + count, 0)
    if (args.json) {
      printJson({ file, rows, tables: Object.fromEntries(tables), left_out: leftOut, audit: status })
      return exits.ok
    }
    print(`${rows} rows of ${tables.size} tables copied from ${file}, which stays as it is.`)
    if (status === 'valid') print(`The audit trail verifies: ${entries} entries.`)
    else
      note(`svc: the audit trail of this home does not verify, nor does the copy: see ${commandLine('audit verify')}`)
    for (const plugin of leftOut)
      note(`svc: the tables of "${plugin}", which is not installed any more, are not copied`)
    print(
      'Files of agents stay in data/workspaces of this home, which is enough for one daemon. For several, copy them with ' +
        'their .mount into the folder that all mount (plugins.files.path), or set plugins.files.mount to "database" or ' +
        `"s3": the next start copies them, and ${commandLine('files copy <target>')} does it before.`,
    )
    print(
      `Now: ${commandLine('config set database_url <address>')} with the same address, then ${commandLine('start')}.`,
    )
    return exits.ok
  },
})
