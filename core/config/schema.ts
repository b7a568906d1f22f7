import * as v from 'valibot'
import { flag, inFile, integer, overApi, table, text, texts, textsThat } from './fields.ts'
import type { Marks } from './fields.ts'
import { isHost, isHostAndPort, isOrigin, isRange } from './hosts.ts'
import { isListenAddr } from './listen.ts'
import { secret } from '../schema/secret.ts'
import type { Schema } from './shape.ts'

const atStart: Marks = { restart: true }
const resources = 'a limit that costs memory or time, and lets nobody in'
const onlyTheLog = 'no record but the log depends on it'
const whoIsServed = 'says whose requests are served'
const whereItLies = 'says where the data lies'
const whatRuns = 'says what code the daemon runs'
const whereItListens = 'says who can reach the daemon'

const day = 86_400_000

const RateLimit = table('How much one client address may ask for.', overApi(resources), {
  tokens_per_minute: integer(
    'Cost units a client address may spend in a minute; routes differ in cost.',
    6000,
    1,
    1_000_000_000_000,
  ),
  failed_auth_per_minute: integer(
    'Wrong keys a client address may send in a minute.',
    10,
    1,
    100_000,
    inFile('more tries find a key sooner'),
  ),
  shared: flag(
    'Where several daemons share a database each allows its part: these limits divided by the number of daemons. ' +
      'Otherwise each daemon allows all of it.',
  ),
})

const DatabaseSection = table('How a PostgreSQL server is used.', overApi(resources), {
  connections: integer('Connections of this daemon, beside the one that hears the other daemons.', 10, 1, 500, atStart),
  statement_timeout_secs: integer('The server ends a statement that takes longer.', 30, 1, 3600, atStart),
  idle_transaction_secs: integer(
    'The server ends a transaction that stands still for longer, because its daemon was paused.',
    15,
    1,
    3600,
    atStart,
  ),
})

const HttpSection = table('Limits and addresses of the HTTP server.', overApi(resources), {
  max_body_bytes: integer('Largest request body.', 8_388_608, 1024, 1_073_741_824),
  max_header_bytes: integer('Largest head of a request: its line and all headers.', 16_384, 2048, 1_048_576, atStart),
  max_json_depth: integer('How deep JSON and TOML from outside may be nested.', 64, 4, 1000),
  headers_timeout_ms: integer('Time a client has to send its headers.', 10_000, 100, day, atStart),
  request_timeout_ms: integer('Time a client has to send a whole request.', 60_000, 100, day, atStart),
  sse_keep_alive_ms: integer('Pause after which an idle event stream gets a comment.', 15_000, 100, day),
  stream_status_ms: integer(
    'How long the status of an answer that is streamed waits for its first event. ' +
      'What is refused before is answered with its status, such as 429 or 503, and not as an event.',
    5000,
    0,
    60_000,
  ),
  socket_buffer_bytes: integer(
    'Bytes a slow WebSocket may fall behind before it is closed.',
    1_048_576,
    4096,
    268_435_456,
  ),
  socket_frame_bytes: integer('Largest WebSocket message a client may send.', 65_536, 1024, 67_108_864),
  socket_idle_ms: integer('Silence of a client after which its WebSocket is closed.', 1_800_000, 1000, day),
  sockets_per_address: integer('WebSockets one client address may have open.', 256, 1, 1_000_000),
  allowed_hosts: textsThat(
    'Names the Host header may have beside the listen address and localhost with its port, ' +
      'such as "svc.example.org"; one without a port stands for every port. With an api_key any name is served, since ' +
      'the key protects.',
    isHostAndPort,
    'a list of host names with or without a port, such as "svc.example.org" or "localhost:8080"',
    inFile(whoIsServed),
  ),
  allowed_origins: textsThat(
    'Web origins that may call the API beside localhost, such as "https://app.example.org".',
    isOrigin,
    'a list of origins without a path, such as "https://app.example.org"',
    inFile(whoIsServed),
  ),
  trusted_proxies: textsThat(
    'Addresses or CIDRs of proxies whose X-Forwarded-For is believed.',
    isRange,
    'a list of addresses or CIDRs, such as "10.0.0.0/8"',
    inFile('a believed proxy names any address, and limits count addresses'),
  ),
  tls: flag('Serve HTTPS with a certificate made at start; tls_cert and tls_key name a real one.', {
    ...atStart,
    ...inFile('without it keys are sent in the clear'),
  }),
  tls_cert: text('File with the TLS certificate chain (PEM).', { ...atStart, ...inFile(whoIsServed) }),
  tls_key: text('File with the private key of the certificate (PEM).', {
    ...atStart,
    ...inFile('names a file that is read'),
    secret: false,
  }),
  open: flag('Open the page in a browser after start.', { ...atStart, ...inFile('starts a program') }),
  public: flag('Listen on all network interfaces and print their addresses.', {
    ...atStart,
    ...inFile(whereItListens),
  }),
})

const Outbound = table('Limits of requests the daemon makes itself.', overApi(resources), {
  allow: textsThat(
    'Hosts and CIDRs that are private yet permitted, such as "10.0.0.0/8" or "ollama.lan".',
    (name) => isRange(name) || isHost(name),
    'a list of host names, addresses and CIDRs without ports, such as "10.0.0.0/8" or "ollama.lan"',
    inFile('opens the private network to tools and programs'),
  ),
  connect_timeout_ms: integer('Time a connection to another server may take.', 10_000, 100, day),
  total_timeout_ms: integer(
    'Time a whole exchange with another server may take; those with a limit of their own are not bound by it.',
    300_000,
    100,
    day,
  ),
  headers_timeout_ms: integer("Time until another server's answer must begin.", 120_000, 100, day),
  idle_timeout_ms: integer('Silence after which an answer that is being read is given up.', 60_000, 100, day),
  max_bytes: integer('Largest answer that is read.', 33_554_432, 1024, 1_073_741_824),
  max_redirects: integer('Redirects that are followed.', 5, 0, 20),
  program_connections: integer('Connections one program that a plugin runs may have open at once.', 64, 1, 4096),
  plugin_connections: integer('Sockets and WebSockets one plugin may have open at once.', 256, 1, 65_535),
  total_program_connections: integer('Connections all such programs may have open together.', 1024, 1, 65_535),
})

const pluginKeys = {
  paths: texts('Folders of further plugins, relative to the file that names them.', {
    ...atStart,
    ...inFile(whatRuns),
  }),
  disabled: texts('Names of plugins that are not loaded.', {
    ...atStart,
    ...inFile('takes away whole guards'),
  }),
  watch: flag(
    'Load, reload and unload plugins in <home>/plugins and in paths when their files change.',
    { ...atStart, ...inFile(whatRuns) },
    true,
  ),
  drain_ms: integer(
    'Time running work has to end by itself before a plugin is unloaded or the daemon stops.',
    5000,
    0,
    3_600_000,
    overApi('says how long an end may take'),
  ),
  isolation: v.optional(
    v.pipe(
      v.picklist(['none', 'worker']),
      v.description('Whether installed plugins run in the daemon or in processes of their own.'),
      v.metadata({ ...atStart, ...inFile(whatRuns) }),
    ),
    'none',
  ),
  isolated: texts('Names of files or folders of further plugins that run in processes of their own.', {
    ...atStart,
    ...inFile(whatRuns),
  }),
  worker_memory_mb: integer(
    'Megabytes of objects that a plugin in a process of its own may have.',
    256,
    16,
    65_536,
    inFile(whatRuns),
  ),
  worker_hang_ms: integer(
    'Time without an answer after which the process of a plugin is ended and started again.',
    15_000,
    100,
    day,
    inFile(whatRuns),
  ),
  worker_message_bytes: integer(
    'Bytes of a message of a plugin process.',
    16_777_216,
    65_536,
    268_435_456,
    inFile(whatRuns),
  ),
  worker_hook_ms: integer('Time for a plugin process to answer a gate.', 5_000, 100, day, inFile(whatRuns)),
  worker_restart_ms: integer(
    'Longest pause before the process of a plugin that ended is started again.',
    60_000,
    100,
    day,
    inFile(whatRuns),
  ),
  max_crashes: integer(
    'Exceptions that nothing caught in one plugin from outside, after which the next start does not load it; 0 for ' +
      'never.',
    3,
    0,
    100,
    overApi('says when a plugin that ends the daemon is set aside'),
  ),
  crash_window_secs: integer(
    'Seconds within which those exceptions count.',
    600,
    1,
    86_400,
    overApi('says when a plugin that ends the daemon is set aside'),
  ),
  retire_ms: integer(
    'Time calls that run while their plugin is reloaded may go on in the old code; for plugins that are not built in.',
    600_000,
    0,
    day,
    inFile(whatRuns),
  ),
  retired_copies: integer(
    'Old copies of one plugin that may still have running calls; with one more, the oldest is ended.',
    8,
    1,
    1000,
    inFile(whatRuns),
  ),
  watch_ms: integer(
    'Time after a reload in which a plugin goes back to the code before if its calls fail; 0 never.',
    60_000,
    0,
    day,
    inFile(whatRuns),
  ),
  revert_failures: integer('Calls that must fail in that time.', 5, 1, 1_000_000, inFile(whatRuns)),
  revert_percent: integer(
    'Percentage of its calls that must fail in that time. It must also be more than twice the percentage before.',
    50,
    1,
    100,
    inFile(whatRuns),
  ),
}
/** Keys of `[plugins]` that are no name of a plugin. */
export const reservedPluginNames: readonly string[] = Object.keys(pluginKeys)

/** `[plugins]` with the sections of these plugins; that of any other one may hold anything. */
function pluginsTable<E extends v.ObjectEntries>(sections: E) {
  return v.pipe(
    v.objectWithRest({ ...pluginKeys, ...sections }, v.record(v.string(), v.unknown())),
    v.description('Which plugins load; [plugins.<name>] is the section of one plugin.'),
  )
}

const ToolsSection = table('Limits of tools.', inFile('bounds what tools do'), {
  timeout_secs: integer('Time one call of a tool may take.', 120, 1, 86_400),
  output_chars: integer('Characters of an answer that the caller gets.', 50_000, 100, 10_000_000),
  content_chars: integer(
    'Characters of images and other parts of an answer beside its text, as JSON; an answer with more comes without them.',
    8_000_000,
    0,
    100_000_000,
  ),
})

const logLevels = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const

const coreEntries = {
  api_key: v.optional(
    secret(
      v.pipe(
        v.string(),
        v.regex(/^\s*[\x21-\x7e]*\s*$/, 'printable ASCII without spaces'),
        v.description(
          'Key every client must send as bearer token. Blank: no key is needed, and only this machine is served.',
        ),
        v.metadata({ ...overApi('whoever has the key may change it; only the file takes it away') }),
      ),
    ),
  ),
  allow_no_auth: flag('Serve other machines without a key. Only behind something that checks who calls.', {
    ...atStart,
    ...inFile(whoIsServed),
  }),
  listen_addr: v.optional(
    v.pipe(
      v.string(),
      v.check(isListenAddr, 'host:port, such as 127.0.0.1:4545 or [::1]:4545'),
      v.description('Address and port to listen on; port 0 takes a free one.'),
      v.metadata({ ...atStart, ...inFile(whereItListens) }),
    ),
    '127.0.0.1:4545',
  ),
  home_dir: text('Home of the daemon. Set with --home or SVC_HOME, because this file lies in it.', {
    ...atStart,
    ...inFile(whereItLies),
  }),
  data_dir: text('Where databases and files live; `data` in the home when unset.', {
    ...atStart,
    ...inFile(whereItLies),
  }),
  database_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(sqlite:.|postgres(ql)?:\/\/.)/, 'sqlite:<path> or postgres://<user>@<host>/<database>'),
      v.description('Where rows are kept; `svc.db` in data_dir when unset.'),
      v.metadata({ ...atStart, ...inFile(whereItLies) }),
    ),
  ),
  vault_key: v.optional(
    secret(
      v.pipe(
        v.string(),
        v.regex(/^\s*[0-9a-f]{64}\s*$/i, '64 hex digits, as `openssl rand -hex 32` prints'),
        v.description('The key that secrets in the database are encrypted with, instead of `vault.key` in the home.'),
        v.metadata({ ...atStart, ...inFile('opens every secret') }),
      ),
    ),
  ),
  vault_key_file: text('A file with that key, such as a mounted secret.', {
    ...atStart,
    ...inFile('opens every secret'),
    secret: false,
  }),
  database: v.optional(DatabaseSection, {}),
  log_level: v.optional(
    v.pipe(
      v.picklist(logLevels),
      v.description('Least important messages that are logged.'),
      v.metadata({ ...overApi(onlyTheLog) }),
    ),
    'info',
  ),
  log_format: v.optional(
    v.pipe(
      v.picklist(['text', 'json']),
      v.description('Log lines for people or one JSON object a line.'),
      v.metadata({ ...overApi(onlyTheLog) }),
    ),
    'text',
  ),
  development: flag("Check the daemon's own answers against their schemas.", { ...atStart, ...inFile(whatRuns) }),
  rate_limit: v.optional(RateLimit, {}),
  http: v.optional(HttpSection, {}),
  outbound: v.optional(Outbound, {}),
  plugins: v.optional(pluginsTable({}), {}),
  tools: v.optional(ToolsSection, {}),
}
/** Names of the keys at the top of the file that the core owns. */
export const coreKeys: readonly string[] = Object.keys(coreEntries)

/** The core's own keys with wire names as in `config.toml`. Any other key at the top of the file is left open. */
export const CoreSchema = v.objectWithRest(coreEntries, v.unknown())

/** What a plugin's definition says of the configuration. */
export interface PluginSchemas {
  readonly name: string
  /** Of `[plugins.<name>]`. */
  readonly config: Schema
  /** Of the keys at the top of the file that it owns. */
  readonly sections?: Readonly<Record<string, Schema>> | undefined
}

/** The core's keys and those that these plugins own at the top of the file. `[plugins.<name>]` may hold anything. */
export function fileSchema(plugins: readonly PluginSchemas[]): Schema {
  return v.object({ ...sectionsOf(plugins), ...coreEntries })
}
/** As `fileSchema`, with `[plugins.<name>]` of each plugin. */
export function wholeSchema(plugins: readonly PluginSchemas[]): Schema {
  const own = Object.fromEntries(plugins.map(({ name, config }) => [name, v.optional(config)]))
  return v.object({ ...sectionsOf(plugins), ...coreEntries, plugins: v.optional(pluginsTable(own), {}) })
}
/** The first plugin that declares a section owns it; the host refuses the second. */
function sectionsOf(plugins: readonly PluginSchemas[]): Readonly<Record<string, Schema>> {
  return Object.assign({}, ...plugins.map(({ sections }) => sections ?? {}).toReversed()) as Record<string, Schema>
}

type Parsed = v.InferOutput<v.ObjectSchema<typeof coreEntries, undefined>>
/**
 * The configuration after loading: directories are absolute, a blank key is gone, and everything is frozen. Beside the
 * core's keys it holds the sections that plugins own, with their defaults once the plugins are known.
 */
export type Config = Readonly<Omit<Parsed, 'home_dir' | 'data_dir' | 'database_url'>> & {
  readonly home_dir: string
  readonly data_dir: string
  readonly database_url: string
  readonly [section: string]: unknown
}
/** What a configuration file may hold: every key is optional. */
export type ConfigInput = Readonly<Omit<v.InferInput<v.ObjectSchema<typeof coreEntries, undefined>>, 'plugins'>> & {
  readonly plugins?: {
    readonly paths?: readonly string[]
    readonly disabled?: readonly string[]
    readonly watch?: boolean
    readonly drain_ms?: number
    /** The section of one plugin, which its own schema checks. */
    readonly [plugin: string]: unknown
  }
  /** A section that a plugin owns, which its schema checks. */
  readonly [section: string]: unknown
}
