import * as v from 'valibot'
import { isHost, isHostAndPort, isOrigin, isRange } from './hosts.ts'
import { isListenAddr } from './listen.ts'
import { secret } from '../schema/secret.ts'

/** What a key needs beside a value. The marks stand in the JSON Schema. */
interface Marks {
  /** A new value holds after a restart; without the mark it holds at once. */
  readonly restart?: true
  /** Whether only the file sets it (`file-only.ts`); without the mark the section around it says so. */
  readonly file_only?: boolean
  /** What somebody could win by setting it, or why nobody wins anything. */
  readonly reason?: string
}
const atStart: Marks = { restart: true }
const inFile = (reason: string): Marks => ({ file_only: true, reason })
const overApi = (reason: string): Marks => ({ file_only: false, reason })
const resources = 'a limit that costs memory or time, and lets nobody in'
const onlyTheLog = 'the audit trail does not depend on it'
const whoIsServed = 'says whose requests are served'
const whereItLies = 'says where the data lies'
const whatRuns = 'says what code the daemon runs'
const whereItListens = 'says who can reach the daemon'
const whichModel = 'chooses among providers that have their keys and addresses already'
const whereKeysGo = 'says where keys and messages are sent, or what is run'

/** A whole number in a range, with its default and one sentence about it. */
function count(description: string, fallback: number, min: number, max: number, marks: Marks = {}) {
  return v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(min),
      v.maxValue(max),
      v.description(description),
      v.metadata({ ...marks }),
    ),
    fallback,
  )
}
function flag(description: string, marks: Marks = {}, fallback = false) {
  return v.optional(v.pipe(v.boolean(), v.description(description), v.metadata({ ...marks })), fallback)
}
/** One line: a name, a file. */
function text(description: string, marks: Marks = {}) {
  return v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(4096),
      v.regex(/^\P{Cc}+$/u, 'a text that is not empty, of one line and at most 4096 characters'),
      v.description(description),
      v.metadata({ ...marks }),
    ),
  )
}
function texts(description: string, marks: Marks = {}) {
  return v.optional(
    v.pipe(v.array(v.pipe(v.string(), v.minLength(1))), v.description(description), v.metadata({ ...marks })),
    [],
  )
}
/** `expected` says what each of them has to be. */
function names(description: string, fits: (name: string) => boolean, expected: string, marks: Marks) {
  return v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1))),
      v.check((list) => list.every(fits), expected),
      v.description(description),
      v.metadata({ ...marks }),
    ),
    [],
  )
}
/** The marks hold for every key of it that has none of its own. */
function section<E extends v.ObjectEntries>(description: string, marks: Marks, entries: E) {
  return v.pipe(v.object(entries), v.description(description), v.metadata({ ...marks }))
}

const day = 86_400_000

export const RateLimit = section('How much one client address may ask for.', overApi(resources), {
  tokens_per_minute: count(
    'Cost units a client address may spend in a minute; routes differ in cost.',
    6000,
    1,
    1_000_000_000_000,
  ),
  failed_auth_per_minute: count(
    'Wrong keys a client address may send in a minute.',
    10,
    1,
    100_000,
    inFile('more tries find a key sooner'),
  ),
})

export const HttpSection = section('Limits and addresses of the HTTP server.', overApi(resources), {
  max_body_bytes: count('Largest request body.', 8_388_608, 1024, 1_073_741_824),
  max_header_bytes: count('Largest head of a request: its line and all headers.', 16_384, 2048, 1_048_576, atStart),
  max_json_depth: count('How deep JSON and TOML from outside may be nested.', 64, 4, 1000),
  headers_timeout_ms: count('Time a client has to send its headers.', 10_000, 100, day, atStart),
  request_timeout_ms: count('Time a client has to send a whole request.', 60_000, 100, day, atStart),
  sse_keep_alive_ms: count('Pause after which an idle event stream gets a comment.', 15_000, 100, day),
  stream_status_ms: count(
    'How long the status of an answer that is streamed waits for its first event. What is refused before is answered with its status, such as 429 or 503, and not as an event.',
    5000,
    0,
    60_000,
  ),
  socket_buffer_bytes: count(
    'Bytes a slow WebSocket may fall behind before it is closed.',
    1_048_576,
    4096,
    268_435_456,
  ),
  socket_frame_bytes: count('Largest WebSocket message a client may send.', 65_536, 1024, 67_108_864),
  socket_idle_ms: count('Silence of a client after which its WebSocket is closed.', 1_800_000, 1000, day),
  sockets_per_address: count('WebSockets one client address may have open.', 256, 1, 1_000_000),
  allowed_hosts: names(
    'Names the Host header may have beside the listen address and localhost with its port, such as "svc.example.org"; one without a port stands for every port.',
    isHostAndPort,
    'a list of host names with or without a port, such as "svc.example.org" or "localhost:8080"',
    inFile(whoIsServed),
  ),
  allowed_origins: names(
    'Web origins that may call the API beside localhost, such as "https://app.example.org".',
    isOrigin,
    'a list of origins without a path, such as "https://app.example.org"',
    inFile(whoIsServed),
  ),
  trusted_proxies: names(
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
  }),
  open: flag('Open the chat page in a browser after start.', { ...atStart, ...inFile('starts a program') }),
  public: flag('Listen on all network interfaces and print their addresses.', {
    ...atStart,
    ...inFile(whereItListens),
  }),
})

export const Outbound = section('Limits of requests the daemon makes itself.', overApi(resources), {
  allow: names(
    'Hosts and CIDRs that are private yet permitted, such as "10.0.0.0/8" or "ollama.lan".',
    (name) => isRange(name) || isHost(name),
    'a list of host names, addresses and CIDRs without ports, such as "10.0.0.0/8" or "ollama.lan"',
    inFile('opens the private network to agents'),
  ),
  connect_timeout_ms: count('Time a connection to another server may take.', 10_000, 100, day),
  total_timeout_ms: count(
    'Time a whole exchange with another server may take; calls of models and those with a limit of their own are not bound by it.',
    300_000,
    100,
    day,
  ),
  headers_timeout_ms: count("Time until another server's answer must begin.", 120_000, 100, day),
  idle_timeout_ms: count('Silence after which an answer that is being read is given up.', 60_000, 100, day),
  max_bytes: count('Largest answer that is read.', 33_554_432, 1024, 1_073_741_824),
  max_redirects: count('Redirects that are followed.', 5, 0, 20),
  program_connections: count('Connections one program of an agent may have open at once.', 64, 1, 4096),
})

export const Plugins = v.optional(
  v.pipe(
    v.objectWithRest(
      {
        paths: texts('Folders of further plugins, relative to the file that names them.', {
          ...atStart,
          ...inFile(whatRuns),
        }),
        disabled: texts('Names of plugins that are not loaded.', {
          ...atStart,
          ...inFile('takes away whole guards, such as approvals'),
        }),
        watch: flag(
          'Load, reload and unload plugins in <home>/plugins and in paths when their files change.',
          { ...atStart, ...inFile(whatRuns) },
          true,
        ),
        drain_ms: count(
          'Time running work has to end by itself before a plugin is unloaded or the daemon stops.',
          5000,
          0,
          3_600_000,
          overApi('says how long an end may take'),
        ),
      },
      v.record(v.string(), v.unknown()),
    ),
    v.description('Which plugins load; [plugins.<name>] is the section of one plugin.'),
  ),
  {},
)

export const Prices = v.pipe(
  v.record(v.string(), v.record(v.string(), v.pipe(v.number(), v.minValue(0)))),
  v.description('USD per million tokens of each model: input, output, cached_input, cache_write.'),
  v.metadata({ ...overApi('what is counted; PUT /api/budget says what may be spent') }),
)
const inVault = 'a key that comes over the API goes into the vault: POST /api/providers/{name}/key'
export const Provider = v.pipe(
  v.objectWithRest(
    {
      api_key: v.optional(
        secret(
          v.pipe(
            v.string(),
            v.description('Key of this provider; the environment variable of the vendor does the same.'),
            v.metadata({ ...inFile(inVault) }),
          ),
        ),
      ),
      api_keys: v.optional(
        secret(
          v.pipe(
            v.array(v.string()),
            v.description(
              'Further keys of this provider: calls take them in turn, and one that is refused rests for a while.',
            ),
            v.metadata({ ...inFile(inVault) }),
          ),
        ),
      ),
      base_url: v.optional(
        v.pipe(
          v.string(),
          v.url(),
          v.description('Where its requests go instead of the vendor.'),
          v.metadata({ ...inFile(whereKeysGo) }),
        ),
      ),
      default_model: text('Model used when none is named.', overApi(whichModel)),
      prices: v.optional(Prices),
      // What only its driver knows may name a program, a folder or another place a key is sent to.
    },
    v.pipe(v.unknown(), v.metadata({ ...inFile(whereKeysGo) })),
  ),
  v.description('One model provider.'),
)

const usd = (description: string) => v.optional(v.pipe(v.number(), v.minValue(0), v.description(description)), 0)
export const Budget = section(
  'What all agents together may spend; 0 is unlimited. `PUT /api/budget` overrides it, and each agent may have limits of its own.',
  overApi('the owner changes it with PUT /api/budget as well'),
  {
    max_hourly_usd: usd('USD in an hour (UTC).'),
    max_daily_usd: usd('USD in a day (UTC).'),
    max_monthly_usd: usd('USD in a calendar month (UTC).'),
    alert_threshold: v.optional(
      v.pipe(v.number(), v.minValue(0), v.maxValue(1), v.description('Part of a limit at which it is told; 0 never.')),
      0.8,
    ),
    default_max_llm_tokens_per_hour: count(
      'Tokens an agent may use in an hour when its manifest does not say; 0 is unlimited.',
      0,
      0,
      Number.MAX_SAFE_INTEGER,
    ),
    unknown_price: v.optional(
      v.pipe(
        v.picklist(['allow', 'refuse']),
        v.description('What happens to a call whose price nobody knows, for an agent whose money is limited.'),
      ),
      'allow',
    ),
  },
)
export const Fallback = v.pipe(
  v.object({
    provider: v.pipe(v.string(), v.minLength(1)),
    model: v.optional(v.pipe(v.string(), v.minLength(1)), 'default'),
    api_key_env: v.exactOptional(v.pipe(v.string(), v.metadata({ ...inFile(whereKeysGo) }))),
    base_url: v.exactOptional(v.pipe(v.string(), v.url(), v.metadata({ ...inFile(whereKeysGo) }))),
  }),
  v.description('A model that answers when those before it cannot.'),
  v.metadata({ ...overApi(whichModel) }),
)

export const ToolsSection = section('Limits of agent tools.', inFile('bounds what agents do'), {
  timeout_secs: count('Time one call of a tool may take.', 120, 1, 86_400),
  output_chars: count('Characters of an answer a model gets to see.', 50_000, 100, 10_000_000),
})

export const ManifestSigning = section(
  'Whose word a manifest of an agent needs.',
  inFile('says which agents may be made'),
  {
    policy: v.optional(
      v.pipe(
        v.picklist(['off', 'warn', 'require']),
        v.description(
          'What happens to a manifest without a signature: taken, taken with a warning when there are trusted signers, refused. A bad signature is always refused.',
        ),
      ),
      'warn',
    ),
    trusted_signers: v.optional(
      v.pipe(
        v.array(v.string()),
        v.check(
          (keys) => keys.every((key) => /^[0-9a-fA-F]{64}$/.test(key)),
          'a list of public keys, each of 64 hexadecimal digits',
        ),
        v.description('Public keys (Ed25519) of those whose signatures count.'),
      ),
      [],
    ),
  },
)

const anotherWayIn = 'is a way in beside the API key, which outlives a new key'
export const WebhookTriggers = section(
  'What other programs may ask for at `/api/hooks`, with a token of their own.',
  inFile(anotherWayIn),
  {
    enabled: flag('Take such requests.'),
    token: v.optional(
      secret(
        v.pipe(
          v.string(),
          v.description('The token, at least 32 characters; the variable that token_env names does the same.'),
        ),
      ),
    ),
    token_env: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of a variable'),
        v.description('Environment variable that holds the token.'),
      ),
      'SVC_WEBHOOK_TOKEN',
    ),
    max_payload_bytes: count('Largest request.', 65_536, 256, 10_485_760),
    rate_limit_per_minute: count('Requests one address may send in a minute.', 30, 1, 1_000_000),
    require_signature: flag(
      'Take only requests that are signed, with an id and a time, so that a recorded one cannot be sent again.',
    ),
  },
)

const webAddress = (description: string) =>
  v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
  )
const secretText = (description: string) =>
  v.optional(secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description))))
export const Pairing = section(
  'Phones and other devices that get a key of their own, with a short code that is typed in once.',
  inFile(anotherWayIn),
  {
    enabled: flag('Let devices be paired, and let those that are use their keys.'),
    max_devices: count('Devices that can be paired at the same time.', 10, 1, 1000),
    token_expiry_secs: count('How long a code can be used.', 300, 30, 3600),
    max_pending: count('Codes that can wait to be used at the same time.', 5, 1, 50),
    max_attempts: count('Wrong codes, whoever sends them, after which the codes that wait are void.', 100, 1, 10_000),
    last_seen_secs: count('How often it is written down when a device was last seen.', 60, 1, 86_400),
    public_base_url: webAddress('Address under which devices reach this daemon, for the link of a code.'),
    push_provider: v.optional(
      v.pipe(v.picklist(['none', 'ntfy', 'gotify']), v.description('Who brings notifications to the devices.')),
      'none',
    ),
    ntfy_url: webAddress('Server of ntfy; https://ntfy.sh when unset.'),
    ntfy_topic: secretText('Topic of ntfy the devices are subscribed to. Who knows it can read along.'),
    ntfy_token: secretText('Access token of ntfy, where the topic needs one.'),
    gotify_url: webAddress('Server of gotify.'),
    gotify_token: secretText('Token of an application of gotify.'),
    push_timeout_ms: count('Time a notification may take.', 10_000, 100, 60_000),
  },
)

const variable = (description: string) =>
  v.optional(
    v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of a variable'), v.description(description)),
  )
/** One OpenID provider. What it does not say of these is what `[external_auth]` says. */
const signInProvider = {
  issuer_url: webAddress(
    'Issuer of the OpenID provider, such as https://accounts.example.org. Plain http only on this machine.',
  ),
  client_id: text('Id of this daemon at the provider.'),
  client_secret: secretText(
    'Secret of this daemon at the provider. Without one it is a public client, which PKCE protects.',
  ),
  client_secret_env: variable('Environment variable that holds the secret.'),
  redirect_url: webAddress(
    'Address of /api/auth/callback as browsers reach it, exactly as it is registered at the provider; http://<listen_addr>/api/auth/callback when unset.',
  ),
  display_name: text('What the button to sign in says.'),
  scopes: texts('Scopes that are asked for; openid, profile and email when empty.'),
  allowed_domains: texts('Domains of e-mail addresses that may sign in; "*" lets in everybody the provider knows.'),
  allowed_emails: texts('Single e-mail addresses that may sign in.'),
  response_mode: v.optional(
    v.pipe(v.picklist(['query', 'form_post']), v.description('How the provider sends people back.')),
  ),
  auth_url: webAddress(
    'Where people sign in. Together with token_url and jwks_uri it stands for the discovery document of the issuer.',
  ),
  token_url: webAddress('Where codes are exchanged.'),
  jwks_uri: webAddress("Where the provider's public keys are."),
  userinfo_url: webAddress('Where more about a person is.'),
}
export const ExternalAuth = section(
  'Signing in to the chat page with an OpenID provider instead of the API key. Who signs in can use all agents; what changes the daemon itself takes the key.',
  inFile(anotherWayIn),
  {
    enabled: flag('Let people sign in.'),
    ...signInProvider,
    require_email_verified: flag('Let nobody in whose e-mail address the provider did not verify.', {}, true),
    session_ttl_secs: count('How long somebody stays signed in.', 86_400, 60, 2_592_000),
    max_sessions: count('Sign-ins that can last at the same time.', 1000, 1, 100_000),
    max_sessions_per_user: count(
      'Sign-ins of one person that can last at the same time; the oldest ends for a new one.',
      20,
      1,
      1000,
    ),
    timeout_ms: count('Time an answer of the provider may take.', 10_000, 100, 60_000),
    providers: v.optional(
      v.pipe(
        v.array(
          v.object({
            id: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'letters, digits, - and _')),
            ...signInProvider,
          }),
        ),
        v.maxLength(20, 'a list of at most 20 tables, each with an id of small letters, digits, - and _'),
        v.description('Several providers: each has an id and the keys above, from issuer_url to userinfo_url.'),
      ),
      [],
    ),
  },
)

export const logLevels = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const

/** Sections that plugins own: whose they are, `sections` of a plugin's definition says. */
const ofPlugins = {
  providers: v.optional(
    v.pipe(v.record(v.string(), Provider), v.description('One section for each model provider: [providers.<name>].')),
    {},
  ),
  fallback_models: v.optional(
    v.pipe(
      v.array(Fallback),
      v.description('Models that answer any agent when its own and their fallbacks cannot, in this order.'),
      v.metadata({ ...overApi(whichModel) }),
    ),
    [],
  ),
  budget: v.optional(Budget, {}),
  manifest_signing: v.optional(ManifestSigning, {}),
  webhook_triggers: v.optional(WebhookTriggers, {}),
  pairing: v.optional(Pairing, {}),
  external_auth: v.optional(ExternalAuth, {}),
}
export type PluginSection = keyof typeof ofPlugins
export const pluginSections: readonly string[] = Object.keys(ofPlugins)

/** The whole configuration with wire names as in `config.toml`. Secrets are marked, so that they are never printed. */
export const ConfigSchema = v.object({
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
  default_provider: text('Provider of agents that name none; found by itself when unset.', overApi(whichModel)),
  default_model: text('Model of agents that name none.', overApi(whichModel)),
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
  plugins: Plugins,
  tools: v.optional(ToolsSection, {}),
  ...ofPlugins,
})

type Parsed = v.InferOutput<typeof ConfigSchema>
/** The configuration after loading: directories are absolute, a blank key is gone, and everything is frozen. */
export type Config = Readonly<Omit<Parsed, 'home_dir' | 'data_dir' | 'database_url'>> & {
  readonly home_dir: string
  readonly data_dir: string
  readonly database_url: string
}
/** What a configuration file may hold: every key is optional. */
export type ConfigInput = Readonly<Omit<v.InferInput<typeof ConfigSchema>, 'plugins'>> & {
  readonly plugins?: {
    readonly paths?: readonly string[]
    readonly disabled?: readonly string[]
    readonly watch?: boolean
    readonly drain_ms?: number
    /** The section of one plugin, which its own schema checks. */
    readonly [plugin: string]: unknown
  }
}
