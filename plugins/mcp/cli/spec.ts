import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { clientArgs, exits, Failure, omitUndefined, readSecret, repeatedFlag, terminalMode } from 'svc/cli'
import { messageOf } from 'svc/internal'

/** How long a server may take to start and to list its tools. */
export const START_MS = 660_000

export const specArgs = {
  name: { type: 'positional', required: true, description: 'Name of the server' },
  command: { type: 'string', valueHint: 'program', description: 'Program of a server on this machine' },
  arg: {
    type: 'string',
    valueHint: 'word',
    description: 'Argument of the program; can be repeated; --arg=-x where it begins with a dash',
  },
  address: { type: 'string', valueHint: 'url', description: 'Address of a server over HTTP' },
  transport: { type: 'string', valueHint: 'stdio|http|sse', description: 'Default: http with --address, else stdio' },
  network: { type: 'string', valueHint: 'host', description: 'Host that the program may reach; can be repeated' },
  secret: {
    type: 'string',
    valueHint: 'variable',
    description: 'Variable whose value is asked for and kept in the vault; can be repeated',
  },
  header: {
    type: 'string',
    valueHint: 'name',
    description: 'Header whose value is asked for and kept in the vault; can be repeated',
  },
  'client-id': {
    type: 'string',
    valueHint: 'id',
    description: 'Client that the vendor registered by hand, of a server with a login',
  },
  'client-secret': { type: 'boolean', description: 'Ask for the secret of that client, and keep it in the vault' },
  'private-key': {
    type: 'string',
    valueHint: 'file',
    description: 'Key (PEM) that signs for that client instead of a secret; kept in the vault',
  },
  scope: { type: 'string', valueHint: 'scope', description: 'Scope to ask for at the login; can be repeated' },
  grant: {
    type: 'string',
    valueHint: 'grant',
    description: 'authorization_code: a person logs in (default); client_credentials: the client itself',
  },
  ...clientArgs,
} as const

interface SpecArgs {
  readonly name: string
  readonly command?: string | undefined
  readonly address?: string | undefined
  readonly transport?: string | undefined
  readonly 'client-id'?: string | undefined
  readonly 'client-secret'?: boolean | undefined
  readonly 'private-key'?: string | undefined
  readonly grant?: string | undefined
}

/** The body for the API. Values of secrets are typed without echo, or are the next lines of standard input. */
export async function readSpec(
  args: SpecArgs,
  words: readonly string[],
  advice = 'write --command PROGRAM or --address URL',
): Promise<object> {
  const { name, command, address, transport } = args
  if ((command === undefined) === (address === undefined))
    throw new Failure(exits.usage, 'a server has either a program or an address', advice)
  const ask = openPrompt()
  const [secrets, headers] = [await askFor('secret', words, ask), await askFor('header', words, ask)]
  const network = repeatedFlag(words, 'network')
  return omitUndefined({
    name,
    transport,
    url: address,
    command,
    args: command === undefined ? undefined : repeatedFlag(words, 'arg'),
    network: network.length === 0 ? undefined : network,
    env: secrets && Object.keys(secrets),
    credentials: secrets,
    headers,
    oauth: await readClient(args, words, ask),
  })
}

/** The client of a server with a login; the daemon says what is wrong with it. */
async function readClient(args: SpecArgs, words: readonly string[], ask: Ask): Promise<object | undefined> {
  const { 'private-key': file, grant } = args
  const scopes = repeatedFlag(words, 'scope')
  const client = omitUndefined({
    client_id: args['client-id'],
    client_secret: args['client-secret'] === true ? await valueOf('client secret', ask) : undefined,
    private_key: file === undefined ? undefined : await readKey(file),
    scopes: scopes.length === 0 ? undefined : scopes,
    grant,
  })
  return Object.keys(client).length === 0 ? undefined : client
}
async function readKey(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Failure(exits.usage, `--private-key: ${messageOf(error)}`, 'name a file with the key', { cause: error })
  }
}

type Ask = (name: string) => Promise<string>

async function askFor(
  flag: 'secret' | 'header',
  words: readonly string[],
  ask: Ask,
): Promise<Record<string, string> | undefined> {
  const values: Record<string, string> = {}
  for (const name of repeatedFlag(words, flag)) {
    values[name] = await valueOf(name, ask)
  }
  return Object.keys(values).length === 0 ? undefined : values
}

async function valueOf(name: string, ask: Ask): Promise<string> {
  const value = await ask(name)
  if (value === '')
    throw new Failure(exits.usage, `${name} has no value`, 'type it, or send it as a line of standard input')
  return value
}

function openPrompt(): Ask {
  if (terminalMode().canType) return (name) => readSecret(`${name} (not shown): `)
  let lines: AsyncIterator<string> | undefined
  return async () => {
    lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    const { done, value } = await lines.next()
    return done === true ? '' : value.trim()
  }
}
