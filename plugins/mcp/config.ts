import { createPrivateKey } from 'node:crypto'
import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { fields, fileOnly, line, secret } from 'svc/sdk'

export const SERVER_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/
const whatIsStarted = 'says which programs of other people run here, and what they may use'

const strings = (description: string, items: number) =>
  v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(4096))), v.maxLength(items), v.description(description)), [])
const folders = (description: string) =>
  v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.check(isAbsolute, 'an absolute folder'))),
      v.maxLength(100),
      v.description(description),
      v.metadata({ opens_folders: true }),
    ),
    [],
  )
const CURVES: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }
/** How a private key (PEM) signs; `undefined` for one that cannot. */
export function algorithmOf(pem: string): string | undefined {
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPrivateKey(pem)
    // RFC 7518: a shorter one signs nothing.
    if (type === 'rsa') return (details?.modulusLength ?? 0) < 2048 ? undefined : 'RS256'
    return CURVES[details?.namedCurve ?? '']
  } catch {
    return undefined
  }
}
export const SIGNING_KEY = 'a private key (PEM, no passphrase): RSA of 2048 bits or more, P-256, P-384 or P-521'
export const scopes = v.pipe(
  v.array(v.pipe(v.string(), v.maxLength(1024), v.regex(/^[!#-[\]-~]+$/, 'one scope, without spaces or quotes'))),
  v.maxLength(100),
)
type Client = { readonly [key in 'client_id' | 'client_secret' | 'private_key']?: string | undefined }
export const isClient = ({ client_id: id, client_secret: password, private_key: key }: Client): boolean =>
  password === undefined ? key === undefined || id !== undefined : key === undefined && id !== undefined
export const CLIENT = 'a client_id with its client_secret or its private_key, not both'
export const variable = v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'the name of a variable'))
export const headerName = v.pipe(v.string(), v.regex(/^[\w!#$%&'*+.^`|~-]{1,100}$/, 'the name of a header'))
const risk = v.picklist(['read', 'write', 'execute'])

/** One `[[mcp_servers]]`. */
const Server = v.pipe(
  v.strictObject({
    name: v.pipe(
      v.string(),
      v.regex(SERVER_NAME, 'lower-case letters, digits and hyphens, at most 32'),
      v.description('Its name; its tools are called mcp_<name>_<tool>.'),
    ),
    transport: v.optional(
      v.pipe(
        v.picklist(['stdio', 'http', 'sse']),
        v.description('How it is reached. Default: stdio for a command, http for a url.'),
      ),
    ),
    command: fields.text('Program that is started: a name, or an absolute path.'),
    args: strings('Arguments of the program, one by one.', 100),
    url: fields.webAddress('Address of an http or sse server. It may be private or on this machine.'),
    headers: v.optional(
      v.pipe(
        v.record(headerName, secret(line(4096))),
        v.description('Headers of every request, such as Authorization.'),
      ),
      {},
    ),
    env: v.optional(
      v.pipe(
        v.array(variable),
        v.maxLength(100),
        v.description("Variables of the daemon's environment that the program gets. It gets no others."),
      ),
      [],
    ),
    path: strings('Folders with programs, searched after those of the system.', 20),
    trust: v.optional(
      v.pipe(
        v.picklist(['operator', 'confined']),
        v.description(
          'operator: the program may use this system and its network. confined: its own folder, and the hosts of network.',
        ),
      ),
      'operator',
    ),
    network: strings('Hosts that a confined program may reach, such as api.example.com or *.example.com.', 100),
    read: folders('Folders (absolute) that a confined program may read besides its own.'),
    write: folders('Folders (absolute) that a confined program may write besides its own.'),
    protocol: v.optional(
      v.pipe(
        v.picklist(['auto', 'initialize']),
        v.description(
          'initialize: the handshake of revisions up to 2025-11-25. auto: asks for revision 2026-07-28 first. ' +
            'Default: initialize for stdio and sse, auto for http.',
        ),
      ),
    ),
    timeout_secs: fields.integer('Seconds a call may take.', 60, 1, 3600),
    tool_timeout_secs: v.optional(
      v.pipe(
        v.record(v.string(), v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(3600))),
        v.description('Seconds a call of single tools may take, by their names on the server.'),
      ),
      {},
    ),
    lazy: fields.flag('Start it with its first use, and stop it when it is idle.', {}, true),
    enabled: fields.flag('Use this server.', {}, true),
    risk: v.optional(
      v.pipe(
        risk,
        v.description(
          'The least risk its tools have: read, write or execute. What its annotations say can only raise it. ' +
            'Default: execute.',
        ),
      ),
    ),
    tool_risk: v.optional(
      v.pipe(v.record(v.string(), risk), v.description('The risk of single tools, by their names on the server.')),
      {},
    ),
    trust_annotations: fields.flag(
      'Believe the server which of its tools only read: without a risk of its own, such a tool has the risk read.',
    ),
    oauth: v.optional(
      v.pipe(
        v.strictObject({
          client_id: fields.text(
            'The client that was registered with the vendor by hand. Default: svc registers itself.',
          ),
          client_secret: v.optional(v.pipe(secret(line(4096)), v.description('The secret of that client.'))),
          private_key: v.optional(
            v.pipe(
              secret(
                v.pipe(
                  v.string(),
                  v.maxLength(16_384),
                  v.check((pem) => algorithmOf(pem) !== undefined, SIGNING_KEY),
                ),
              ),
              v.description('The key (PEM) that signs its requests for tokens, instead of a secret: private_key_jwt.'),
            ),
          ),
          scopes: v.optional(
            v.pipe(scopes, v.description('Scopes to ask for. Default: those that the server names.')),
            [],
          ),
          grant: v.optional(
            v.pipe(
              v.picklist(['authorization_code', 'client_credentials']),
              v.description('authorization_code: a person logs in. client_credentials: the client itself does.'),
            ),
            'authorization_code',
          ),
        }),
        v.check((client) => isClient(client), CLIENT),
      ),
    ),
    sampling: fields.flag("Let the server ask the model of the agent that calls it, within the agent's budget."),
    tools: strings('Tools to offer, by their names on the server, * for any characters. Empty: all.', 1000),
  }),
  v.check(
    ({ command, url }) => (command === undefined) !== (url === undefined),
    'a server with either a command or a url',
  ),
  v.check(({ oauth, url }) => oauth === undefined || url !== undefined, 'a server with a url, or without oauth'),
)

/** `[[mcp_servers]]` at the top of the file. */
export const Servers = fileOnly(
  whatIsStarted,
  v.optional(
    v.pipe(
      v.array(Server),
      v.maxLength(100),
      v.check((list) => new Set(list.map(({ name }) => name)).size === list.length, 'servers with different names'),
      v.description('MCP servers whose tools agents can use.'),
    ),
    [],
  ),
)
export type ServerEntry = v.InferOutput<typeof Server>

/** `[plugins.mcp]`: what bounds every server. */
export const Settings = fileOnly(
  'bounds programs of other people',
  v.object({
    max_servers: fields.integer('Servers, those of the file included.', 50, 1, 60),
    start_timeout_secs: fields.integer('Seconds until a started server must have answered the handshake.', 30, 1, 600),
    idle_secs: fields.integer('Seconds without a call after which a lazy server is stopped.', 600, 1, 86_400),
    restart_min_ms: fields.integer(
      'Milliseconds before the first restart of a server that ended; each further pause is twice as long, with jitter.',
      1000,
      1,
      3_600_000,
    ),
    restart_max_ms: fields.integer('Longest pause before a restart, in milliseconds.', 60_000, 1, 86_400_000),
    max_restarts: fields.integer('Restarts in a row after which a server is given up.', 5, 0, 1000),
    restart_reset_secs: fields.integer('Seconds of work after which earlier failures no longer count.', 60, 1, 86_400),
    max_message_bytes: fields.integer(
      'Largest message of a server; a larger one ends it.',
      10_485_760,
      1024,
      268_435_456,
    ),
    max_broken_messages: fields.integer(
      'Broken messages, or answers that nobody asked for, after which a server is ended.',
      20,
      0,
      100_000,
    ),
    max_messages_per_second: fields.integer('Messages a second after which a server is ended.', 2000, 10, 1_000_000),
    max_waiting_bytes: fields.integer('Bytes that may wait to be read by a server.', 16_777_216, 65_536, 1_073_741_824),
    log_bytes: fields.integer('Bytes of what a server writes to stderr that are kept.', 65_536, 1024, 16_777_216),
    error_output_chars: fields.integer(
      'Characters of what a program wrote last that its error shows.',
      1000,
      0,
      16_384,
    ),
    max_tools: fields.integer('Tools of one server; further ones are left out.', 2000, 1, 10_000),
    max_remembered_tools: fields.integer(
      'Tools of one server that are remembered as approved; further new ones are not used.',
      4000,
      1,
      20_000,
    ),
    relist_pause_ms: fields.integer(
      'Milliseconds between two readings of the tools of a server that says that they changed.',
      1000,
      1,
      3_600_000,
    ),
    max_pages: fields.integer('Pages of a list that are read.', 100, 1, 10_000),
    max_description_chars: fields.integer('Characters of the description of a tool that agents see.', 2048, 64, 65_536),
    max_schema_bytes: fields.integer(
      'Largest schema of a tool, as JSON; a tool with a larger one is left out.',
      65_536,
      256,
      4_194_304,
    ),
    max_output_bytes: fields.integer(
      'Largest result of a call, content and structure included.',
      10_485_760,
      1024,
      268_435_456,
    ),
    public_url: fields.webAddress(
      'Address at which browsers and authorization servers reach this daemon, for logins at MCP servers. ' +
        'Default: the address it listens on.',
    ),
    client_metadata_url: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(2048),
        v.url('an address such as https://example.com/client.json'),
        v.regex(/^https:\/\//i, 'an https address'),
        v.description(
          'https address of the document that describes this daemon to authorization servers, where it is hosted ' +
            'elsewhere. Default: that of the daemon, if public_url is an https address.',
        ),
      ),
    ),
    sampling_max_tokens: fields.integer('Longest answer of a model to a server, in tokens.', 4096, 1, 1_000_000),
    sampling_per_call: fields.integer('Questions that a server may ask a model during one call.', 5, 1, 1000),
    sampling_per_minute: fields.integer('Questions that a server may ask models in a minute.', 20, 1, 10_000),
    elicitations_per_call: fields.integer(
      'Forms that a server may ask a person to fill in during one call.',
      5,
      1,
      100,
    ),
    elicitation_timeout_secs: fields.integer('Seconds a person has to fill in a form of a server.', 300, 10, 3600),
    max_calls: fields.integer('Calls that one server may run at the same time.', 32, 1, 10_000),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
