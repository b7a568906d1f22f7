import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandName,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  findNearest,
  isObject,
  note,
  print,
  printJson,
  readJson,
  suggest,
} from 'svc/cli'
import { listAvailable } from './client.ts'
import type { Available, Entry, Variable } from './client.ts'

const Added = v.looseObject({ id: v.string(), state: v.string(), tool_count: v.number(), message: v.string() })

export default defineCommand({
  description:
    'Add an integration of the catalogue. Asks for the values it needs; secrets are not shown. Without a terminal ' +
    'the required values are read from standard input, one line each.',
  args: {
    type: { type: 'positional', required: true, description: 'Id in the catalogue' },
    name: { type: 'string', description: 'Name of the integration (default: that of the catalogue)' },
    fields: { type: 'string', description: 'Values as a JSON object, no secrets', valueHint: 'json' },
    login: { type: 'boolean', description: 'Sign in with the vendor instead of entering a secret' },
    ...clientArgs,
  },
  examples: [
    ['svc integration add memory', 'one that needs nothing'],
    ['pass show github | svc integration add github', 'the token from a password manager'],
    ['svc integration add notion --login', 'and sign in afterwards'],
    ['svc integration add github --login', 'the same with an OAuth app of your own, whose id and secret it asks for'],
  ],
  async run(args) {
    const connection = await connect(args)
    const entry = entryOf(await callDaemon(connection, (client) => listAvailable(client)), args.type)
    const credentials = await readValues(entry, readFields(args.fields), args.login === true)
    const added = await callDaemon(connection, (client) =>
      client.call('POST', '/api/integrations/add', Added, {
        body: { type: entry.id, credentials, ...(args.name !== undefined && { name: args.name }) },
      }),
    )
    if (args.json) printJson(added)
    else print(`${entry.name} is added as ${added.id}. ${escapeControls(added.message)}.`)
    return exits.ok
  },
})

function entryOf({ integrations }: Available, id: string): Entry {
  const found = integrations.find((each) => each.id === id)
  if (found) return found
  const ids = integrations.map((each) => each.id)
  const advice = `${commandName()} integration available lists the catalogue`
  throw new Failure(exits.notFound, `there is no integration "${id}"${suggest(findNearest(id, ids))}`, advice)
}

function readFields(text: string | undefined): Readonly<Record<string, string>> {
  if (text === undefined) return {}
  try {
    const value: unknown = readJson(text)
    if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, String(each)]))
  } catch {
    // Reported below.
  }
  throw new Failure(exits.usage, '--fields is no JSON object', `such as '{"JIRA_USER_EMAIL": "ada@example.org"}'`)
}

async function readValues(
  entry: Entry,
  given: Readonly<Record<string, string>>,
  isLogin: boolean,
): Promise<Readonly<Record<string, string>>> {
  if (isLogin && !entry.has_oauth)
    throw new Failure(exits.usage, `${entry.id} has no login`, 'leave out --login and enter the values it needs')
  const isAsked = (each: Variable): boolean =>
    ((isLogin || entry.needs_login) && each.for_login) || (each.required && (!isLogin || entry.needs_login))
  const wanted = entry.required_env.filter((each) => isAsked(each) && given[each.name] === undefined)
  if (wanted.length === 0) return given
  if (entry.setup_instructions !== '') note(escapeControls(entry.setup_instructions))
  const { openInput } = await import('./input.ts')
  const input = openInput()
  const values: Record<string, string> = { ...given }
  for (const variable of wanted) {
    const value = await input.ask(promptOf(variable), variable.is_secret)
    if (value !== '') values[variable.name] = value
    // Whoever can sign in needs no secret; a client has an id, and may have no secret.
    else if (isLogin || entry.needs_login ? variable.required || !variable.is_secret : !entry.has_oauth)
      throw missing(variable)
  }
  return values
}

function promptOf({ label, help, get_url: url, is_secret: isSecret }: Variable): string {
  const words = [help.replace(/\.$/, ''), url ?? '', isSecret ? 'not shown' : ''].filter((part) => part !== '')
  return `${label}${words.length === 0 ? '' : ` (${words.join('; ')})`}: `
}
function missing({ name, label }: Variable): Failure {
  return new Failure(
    exits.usage,
    `${name} is required: ${label}`,
    'enter it on a terminal, or send it as a line of standard input; nothing was changed',
  )
}
