import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError, findHome, loadConfig } from '../../../core/config/load.ts'
import type { ConfigOptions, LoadedConfig } from '../../../core/config/load.ts'
import { OwnConfig, sections } from '../../../plugins/providers/config.ts'
import { Settings, Triggers } from '../../../plugins/webhooks/schema.ts'
import { secret } from '../../../core/schema/secret.ts'
import * as v from 'valibot'

let home: string
let cwd: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-config-'))
  cwd = await mkdtemp(join(tmpdir(), 'svc-cwd-'))
})
afterEach(async () => {
  await rm(home, { recursive: true })
  await rm(cwd, { recursive: true })
})

const plugins = [
  { name: 'providers', config: OwnConfig, sections },
  { name: 'webhooks', config: Settings, sections: { webhook_triggers: v.optional(Triggers, {}) } },
]
/** As a daemon with these plugins has it. */
async function load(
  parts: Partial<ConfigOptions> & { readonly toml?: string; readonly module?: string } = {},
): Promise<LoadedConfig> {
  const { toml, module, ...options } = parts
  if (toml !== undefined) await writeFile(join(home, 'config.toml'), toml)
  if (module !== undefined) await writeFile(join(cwd, 'svc.config.ts'), module)
  return (await loadConfig({ home, cwd, env: {}, flags: {}, ...options })).complete(plugins)
}
async function failure(parts: Parameters<typeof load>[0]): Promise<ConfigError> {
  const error = await load(parts).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof ConfigError) return error
  throw new Error(`expected a ConfigError, got ${String(error)}`)
}

describe('precedence', () => {
  it('gives defaults when nothing is configured', async () => {
    const { config, warnings, sources, files } = await load()
    expect(config).toMatchObject({
      listen_addr: '127.0.0.1:4545',
      log_level: 'info',
      log_format: 'text',
      home_dir: home,
      data_dir: join(home, 'data'),
      database_url: `sqlite:${join(home, 'data', 'svc.db')}`,
      rate_limit: { tokens_per_minute: 6000, failed_auth_per_minute: 10 },
      plugins: { paths: [], disabled: [], watch: true },
      providers: {},
      outbound: { allow: [] },
      tools: { timeout_secs: 120, output_chars: 50_000 },
    })
    expect(config.api_key).toBeUndefined()
    expect([warnings, files, sources.size]).toEqual([[], [], 0])
  })
  it('lets each later source win over the earlier ones', async () => {
    const key = 'rate_limit.tokens_per_minute'
    const shipped = { rate_limit: { tokens_per_minute: 1 } }
    const module = 'export default { rate_limit: { tokens_per_minute: 2 } }'
    const toml = '[rate_limit]\ntokens_per_minute = 3\n'
    const env = { SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '4' }
    const flags = { [key]: '5' }
    const runtime = { [key]: 6 }
    const got: [number, string | undefined][] = []
    for (const parts of [
      { shipped },
      { shipped, module },
      { shipped, toml },
      { shipped, env },
      { shipped, env, flags },
      { shipped, env, flags, runtime },
    ]) {
      const { config, sources } = await load(parts)
      got.push([config.rate_limit.tokens_per_minute, sources.get(key)])
    }
    expect(got).toEqual([
      [1, 'svc.config.ts'],
      [2, `${join(cwd, 'svc.config.ts')}:1`],
      [3, `${join(home, 'config.toml')}:2`],
      [4, 'SVC_RATE_LIMIT__TOKENS_PER_MINUTE'],
      [5, '--tokens-per-minute'],
      [6, 'run time'],
    ])
  })
  it('joins tables of several sources key by key', async () => {
    const { config } = await load({
      toml: '[rate_limit]\ntokens_per_minute = 3\n',
      env: { SVC_RATE_LIMIT__FAILED_AUTH_PER_MINUTE: '7' },
    })
    expect(config.rate_limit).toEqual({ tokens_per_minute: 3, failed_auth_per_minute: 7, shared: false })
  })
  it('does not load the configuration again that the build already holds', async () => {
    const { config } = await load({
      module: 'throw new Error("loaded")',
      shipped: { log_level: 'warn' },
      shippedFrom: join(cwd, 'svc.config.ts'),
    })
    expect(config.log_level).toBe('warn')
  })
  it('reads the file named with --config instead of the one in the folder', async () => {
    await writeFile(join(cwd, 'other.toml'), 'log_level = "debug"\n')
    const { config } = await load({ module: 'export default { log_level: "warn" }', configFile: 'other.toml' })
    expect(config.log_level).toBe('debug')
  })
  it('finds defineConfig in svc/sdk wherever the file lies', async () => {
    const { config } = await load({
      module: "import { defineConfig } from 'svc/sdk'\nexport default defineConfig({ log_level: 'warn' })\n",
    })
    expect(config.log_level).toBe('warn')
  })
  it('freezes everything', async () => {
    const { config } = await load({ toml: '[plugins.hello]\nlist = ["a"]\n' })
    expect(
      Object.isFrozen(config) &&
        Object.isFrozen(config.rate_limit) &&
        Object.isFrozen(config.plugins['hello']?.['list']),
    ).toBe(true)
  })
})

describe('flags and addresses', () => {
  it('changes only the part of the address that is given', async () => {
    const address = async (flags: Record<string, unknown>): Promise<string> =>
      (await load({ env: { SVC_LISTEN_ADDR: '127.0.0.2:5000' }, flags })).config.listen_addr
    expect(
      await Promise.all([
        address({}),
        address({ port: '0' }),
        address({ host: '::1' }),
        address({ host: '[::1]', port: 80 }),
      ]),
    ).toEqual(['127.0.0.2:5000', '127.0.0.2:0', '[::1]:5000', '[::1]:80'])
  })
  it('takes SVC_LISTEN, and SVC_LISTEN_ADDR before it', async () => {
    expect((await load({ env: { SVC_LISTEN: '127.0.0.1:1' } })).config.listen_addr).toBe('127.0.0.1:1')
    expect(
      (await load({ env: { SVC_LISTEN: '127.0.0.1:1', SVC_LISTEN_ADDR: '127.0.0.1:2' } })).config.listen_addr,
    ).toBe('127.0.0.1:2')
  })
  it.each(['foo', '70000', '-1', '4545x', '1.5', ''])('refuses the port %j and names the flag', async (port) => {
    expect((await failure({ flags: { port } })).message).toBe(
      `flags: --port: expected a whole number from 0 to 65535, found ${JSON.stringify(port)}`,
    )
  })
  it.each(['', 'a b', 'a/b', '::zz'])('refuses the host %j', async (host) => {
    expect((await failure({ flags: { host } })).message).toContain('--host: expected a host name or an address')
  })
  it('finds the home by flag, then variable, then below the user', () => {
    expect(findHome('x', { SVC_HOME: '/y' }, '/cwd')).toBe('/cwd/x')
    expect(findHome(undefined, { SVC_HOME: '~/y', HOME: '/home/u' }, '/cwd')).toBe('/home/u/y')
    expect(findHome(undefined, { HOME: '/home/u' }, '/cwd')).toBe('/home/u/.svc')
  })
})

describe('environment', () => {
  it('makes the types the keys want', async () => {
    const { config, warnings } = await load({
      env: {
        SVC_PLUGINS__WATCH: 'yes',
        SVC_PLUGINS__DISABLED: 'a, b',
        SVC_OUTBOUND__ALLOW: '["10.0.0.0/8", "x.lan"]',
        SVC_HTTP__MAX_BODY_BYTES: '1_000_000',
        SVC_PLUGINS__OPENAI_API__LIMIT: '5',
        SVC_PROVIDERS__OPENAI__API_KEY: 'sk-test',
        SVC_PLUGINS__HELLO__GREETING: 'hi',
      },
    })
    expect(config.plugins).toMatchObject({
      watch: true,
      disabled: ['a', 'b'],
      'openai-api': { limit: 5 },
      hello: { greeting: 'hi' },
    })
    expect(config.outbound.allow).toEqual(['10.0.0.0/8', 'x.lan'])
    expect(config.http.max_body_bytes).toBe(1_000_000)
    expect(config['providers']).toMatchObject({ openai: { api_key: 'sk-test' } })
    expect(warnings).toEqual([])
  })
  it('trims the key and takes a blank one for none', async () => {
    expect((await load({ toml: 'api_key = "  abc "\n' })).config.api_key).toBe('abc')
    expect((await load({ toml: 'api_key = "   "\n' })).config.api_key).toBeUndefined()
  })
  it('does not let a blank variable switch off the key of the file', async () => {
    expect((await load({ toml: 'api_key = "abc"\n', env: { SVC_API_KEY: '' } })).config.api_key).toBe('abc')
  })
})

describe('what is wrong', () => {
  it('warns of an unknown key with its line and the nearest known one', async () => {
    const { warnings } = await load({
      toml: 'lissten_addr = "x"\n\n[rate_limt]\na = 1\n[http]\nmax_body_byte = 5\n',
      env: { SVC_LOG_LEVLE: 'info' },
    })
    const file = join(home, 'config.toml')
    expect(warnings).toEqual([
      `${file}:1: unknown key "lissten_addr" is ignored; did you mean "listen_addr"?`,
      `${file}:3: unknown key "rate_limt" is ignored; did you mean "rate_limit"?`,
      `${file}:6: unknown key "http.max_body_byte" is ignored; did you mean "max_body_bytes"?`,
      'environment: unknown key "SVC_LOG_LEVLE" is ignored; did you mean "log_level"?',
    ])
  })
  it('names the section of a key that stands in the wrong place', async () => {
    const { warnings } = await load({ toml: 'tokens_per_minute = 5\n' })
    expect(warnings[0]).toContain('did you mean "rate_limit.tokens_per_minute"?')
  })
  it('refuses a wrong type with file, line, column, key, what was expected and found', async () => {
    const error = await failure({ toml: '# a comment\n[rate_limit]\n  tokens_per_minute = "many" # x\n' })
    expect(error.problems).toEqual([
      {
        file: join(home, 'config.toml'),
        line: 3,
        column: 3,
        key: 'rate_limit.tokens_per_minute',
        expected: 'a whole number from 1 to 1000000000000',
        found: 'the text "many"',
      },
    ])
    expect([error.file, error.line, error.column, error.key, error.expected]).toEqual([
      join(home, 'config.toml'),
      3,
      3,
      'rate_limit.tokens_per_minute',
      'a whole number from 1 to 1000000000000',
    ])
  })
  it('shows no password of an address', async () => {
    const error = await failure({ toml: 'database_url = "postgress://me:pa55word@db/x"\n' })
    expect(error.message).toContain('found the text "postgress://***@db/x"')
    expect(error.message).not.toContain('pa55word')
  })
  it('reports every problem of every source at once', async () => {
    const error = await failure({
      toml: 'log_level = "loud"\nplugins = 5\n',
      env: { SVC_HTTP__MAX_JSON_DEPTH: 'deep' },
      flags: { log_format: 'xml' },
      runtime: { 'tools.timeout_secs': -1 },
    })
    expect(error.message.replaceAll(home, '')).toBe(
      [
        '/config.toml:1:1: log_level: expected one of silent, error, warn, info, debug, trace, found the text "loud"',
        '/config.toml:2:1: plugins: expected a table, found the number 5',
        'environment: SVC_HTTP__MAX_JSON_DEPTH: expected a whole number from 4 to 1000, found the text "deep"',
        'flags: --log-format: expected one of text, json, found the text "xml"',
        'run time: tools.timeout_secs: expected a whole number from 1 to 86400, found the number -1',
      ].join('\n'),
    )
  })
  it('finds a wrong value also where a later source hides it', async () => {
    expect((await failure({ toml: 'log_level = 5\n', env: { SVC_LOG_LEVEL: 'info' } })).key).toBe('log_level')
  })
  it('never shows the value of a secret', async () => {
    const error = await failure({
      toml: 'api_key = 123456789\n[providers.openai]\napi_key = ["sk-geheim"]\n',
      env: { SVC_API_KEY: 'two words' },
    })
    expect(error.message).not.toMatch(/123456789|geheim|two words/)
    expect(error.message).toContain(
      'api_key: expected printable ASCII without spaces, found a number (not shown: a secret)',
    )
  })
  it('says line and column of malformed TOML', async () => {
    const error = await failure({ toml: 'a = 1\nb = = 2\n' })
    expect([error.file, error.line, error.column]).toEqual([join(home, 'config.toml'), 2, 5])
    expect(error.message).toMatch(/not valid TOML: \w+/)
  })
  it('says the line of a wrong value in svc.config.ts', async () => {
    const error = await failure({ module: 'export default {\n  log_level: "loud",\n}\n' })
    expect([error.file, error.line]).toEqual([join(cwd, 'svc.config.ts'), 2])
  })
  it.each([
    ['export default {,}', 'cannot be loaded'],
    ['throw new Error("boom")', 'boom'],
    ['export default 5', 'has to be an object'],
  ])('refuses the module %j', async (module, message) => {
    expect((await failure({ module })).message).toContain(message)
  })
  it('refuses a file named with --config that does not exist', async () => {
    expect((await failure({ configFile: 'nowhere.ts' })).message).toBe(
      `${join(cwd, 'nowhere.ts')}: the file named with --config does not exist`,
    )
  })
  it('refuses a file it may not read, without a stack', async (context) => {
    if (process.getuid?.() === 0) return context.skip('root reads everything')
    await writeFile(join(home, 'config.toml'), '')
    await chmod(join(home, 'config.toml'), 0)
    expect((await failure({})).message).toContain('cannot be read (EACCES)')
  })
  it.each(['nonsense', '127.0.0.1', '127.0.0.1:99999', '[zz]:80', 'a:b:1', 'http://x:80'])(
    'refuses the address %j',
    async (address) => {
      expect((await failure({ toml: `listen_addr = "${address}"\n` })).expected).toBe(
        'host:port, such as 127.0.0.1:4545 or [::1]:4545',
      )
    },
  )
  it.each([
    ['http.trusted_proxies', 'proxy.lan', 'a list of addresses or CIDRs'],
    ['http.trusted_proxies', '10.0.0.0/33', 'a list of addresses or CIDRs'],
    ['outbound.allow', 'not a host!', 'a list of host names, addresses and CIDRs without ports'],
    ['outbound.allow', 'ollama.lan:11434', 'without ports'],
    ['http.allowed_hosts', 'svc.example.org:99999', 'a list of host names'],
    ['http.allowed_origins', 'https://app.example.org/', 'a list of origins without a path'],
  ])('refuses %s = ["%s"], which would never fit anything', async (key, value, expected) => {
    expect((await failure({ toml: `${key} = ["${value}"]\n` })).expected).toContain(expected)
  })
  it('takes what does fit', async () => {
    const toml = [
      '[outbound]',
      'allow = ["10.0.0.0/8", "ollama.lan", "::1", "fd00::/8", "bücher.example"]',
      '[http]',
      'trusted_proxies = ["127.0.0.1", "fd00::/8"]',
      'allowed_hosts = ["svc.example.org", "localhost:8080", "[::1]:8080"]',
      'allowed_origins = ["https://app.example.org:8443", "chrome-extension://abc"]',
      '',
    ].join('\n')
    expect((await load({ toml })).config.outbound.allow).toHaveLength(5)
  })
  it('refuses a database of another kind', async () => {
    expect((await failure({ env: { SVC_DATABASE_URL: 'mysql://x' } })).expected).toContain('sqlite:<path>')
  })
  it('warns of a home set where it cannot work', async () => {
    expect((await load({ toml: 'home_dir = "/elsewhere"\n' })).warnings[0]).toContain('home_dir has no effect there')
  })
  it('keeps a key named like a prototype out of everything', async () => {
    const { config } = await load({ toml: '[plugins.__proto__]\npolluted = true\n' })
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(Object.keys(config.plugins)).not.toContain('__proto__')
  })
})

describe('sections of plugins and providers', () => {
  it('passes them through as they are', async () => {
    const { config, warnings } = await load({
      toml: [
        '[plugins.hello]',
        'greeting = "hi"',
        '[plugins.hello.deep]',
        'x = [1, 2]',
        '[providers.acme]',
        'base_url = "http://127.0.0.1:1/v1"',
        'region = "eu"',
        '',
      ].join('\n'),
    })
    expect(config.plugins['hello']).toEqual({ greeting: 'hi', deep: { x: [1, 2] } })
    expect(config['providers']).toMatchObject({ acme: { base_url: 'http://127.0.0.1:1/v1', region: 'eu' } })
    expect(warnings).toEqual([])
  })
  it('refuses a section that is no table', async () => {
    expect((await failure({ toml: '[plugins]\nhello = 5\n' })).message).toContain(
      'plugins.hello: expected a table, found the number 5',
    )
    expect((await failure({ toml: '[plugins]\ndrain_sm = 9\n' })).message).toContain(
      'plugins.drain_sm: expected a table (did you mean "drain_ms"?), found the number 9',
    )
  })
  it('takes plugin folders relative to the file that names them', async () => {
    expect((await load({ toml: '[plugins]\npaths = ["mine", "/abs"]\n' })).config.plugins.paths).toEqual([
      join(home, 'mine'),
      '/abs',
    ])
    await rm(join(home, 'config.toml'))
    expect(
      (await load({ shipped: { plugins: { paths: ['./q'] } }, shippedFrom: '/repo/svc.config.ts' })).config.plugins
        .paths,
    ).toEqual(['/repo/q'])
    expect((await load({ module: 'export default { plugins: { paths: ["./p"] } }' })).config.plugins.paths).toEqual([
      join(cwd, 'p'),
    ])
  })
})

describe('a list of tables', () => {
  const Item = v.pipe(
    v.strictObject({
      name: v.string(),
      key: v.optional(
        secret(
          v.pipe(
            v.string(),
            v.check((text) => text.startsWith('k'), 'a key that begins with k'),
          ),
        ),
      ),
      tags: v.optional(v.array(v.picklist(['a', 'b']))),
      start: v.optional(v.boolean()),
      end: v.optional(v.boolean()),
    }),
    v.check(({ start, end }) => start !== end, 'a start or an end'),
  )
  const items = v.optional(
    v.pipe(
      v.array(Item),
      v.check((list) => new Set(list.map(({ name }) => name)).size === list.length, 'different names'),
      v.maxLength(3),
    ),
  )
  it.each([
    ['name = "x"\nkey = "secret-0815"\nend = true', 'items.0.key', 'a key that begins with k', 3, /a secret/],
    ['name = "x"\nend = true\ntags = ["a", "c"]', 'items.0.tags.1', 'one of a, b', 4, /"c"/],
    ['name = "x"\nstrat = true', 'items.0.strat', undefined, 3, /unknown key "strat"|unknown key/],
    ['end = true', 'items.0.name', 'a text', 1, /nothing/],
    ['name = "x"', 'items.0', 'a start or an end', 1, /a table/],
    ['name = "x"\nend = true\n[[items]]\nname = "x"\nend = true', 'items', 'different names', 1, /a list/],
  ])('%j is wrong at %s', async (toml, key, expected, line, text) => {
    const config = v.object({})
    await writeFile(join(home, 'config.toml'), `[[items]]\n${toml}\n`)
    const loading = loadConfig({ home, cwd, env: {}, flags: {} })
    const error = await loading
      .then((loaded) => loaded.complete([{ name: 'lists', config, sections: { items } }]))
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ key, expected, line, message: expect.stringMatching(text) })
    expect(String(error)).not.toContain('0815')
  })
  it('is told from something else', async () => {
    await writeFile(join(home, 'config.toml'), 'items = 3\n')
    const loaded = await loadConfig({ home, cwd, env: {}, flags: {} })
    expect(() => loaded.complete([{ name: 'lists', config: v.object({}), sections: { items } }])).toThrow(
      'items: expected a list of tables, found the number 3',
    )
  })
})
