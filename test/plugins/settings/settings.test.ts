import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { HostOptions, TestHost } from '../../support/host.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-settings-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

const file = (): string => join(home, 'config.toml')
const start = (options: HostOptions = {}): Promise<TestHost> =>
  startHost({
    home,
    plugins: ['audit', 'settings', 'system', 'kv', 'agents', 'cluster', 'journal', 'sessions', 'usage', 'providers'],
    ...options,
  })
const events = async (host: TestHost): Promise<string[]> => {
  const { body } = await host.json('GET', '/api/audit/recent?limit=50')
  return body.entries
    .filter((entry: { event_type: string }) => entry.event_type === 'config_change')
    .map((entry: { details: string }) => entry.details)
}

describe('reading the configuration', () => {
  it('shows the fields of the interface and everything else without secrets', async () => {
    await writeFile(
      file(),
      [
        'api_key = "very-secret-key"',
        'default_provider = "openai"',
        '[providers.openai]',
        'api_key = "sk-canary"',
        '[[mcp_servers]]',
        'name = "files"',
        'command = "files-server"',
        '',
      ].join('\n'),
    )
    await using host = await start()
    const { status, body } = await host.json('GET', '/api/config', undefined, {
      authorization: 'Bearer very-secret-key',
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      default_provider: 'openai',
      default_model: expect.any(String),
      listen_addr: '127.0.0.1:0',
      api_key_set: true,
      channels_configured: [],
      mcp_servers: ['files'],
      restart_required: [],
    })
    expect(body.config.providers.openai.api_key).toBe('***')
    expect(body.sources['default_provider']).toMatch(/config\.toml:2$/)
    expect(JSON.stringify(body)).not.toMatch(/very-secret-key|sk-canary/)
  })

  it('describes every key as JSON Schema, with plugins, secrets and what needs a restart', async () => {
    await using host = await start()
    const { body } = await host.json('GET', '/api/config/schema')
    expect(body.$schema).toContain('draft-07')
    expect(body.properties.api_key).toMatchObject({ secret: true, writeOnly: true })
    expect(body.properties.listen_addr).toMatchObject({ restart: true, file_only: true })
    expect(body.properties.log_level.restart).toBeUndefined()
    expect(Object.keys(body.properties.plugins.properties)).toEqual(expect.arrayContaining(['paths', 'kv', 'settings']))
  })
})

describe('what is shown in place of a secret', () => {
  const config = `settable('a test', v.object({
    bot_token: v.optional(v.string()), pin: v.optional(secret(v.string())),
    upstream: v.optional(v.record(v.string(), v.unknown())),
    servers: v.optional(v.array(v.record(v.string(), v.unknown()))), proxy: v.optional(v.string()) }))`
  /** With a plugin that marks one of its secrets and only names the others. */
  async function keeping(): Promise<TestHost> {
    const folder = join(home, 'keeper')
    const text = pluginText('keeper', { before: `import { secret, settable } from 'svc/sdk'` })
    await writePlugin(folder, text.replace('config: v.object({})', `config: ${config}`))
    await writeFile(
      file(),
      [
        `[plugins.keeper]`,
        `bot_token = "canary-1"`,
        `pin = "canary-2"`,
        `proxy = "http://me:canary-3@127.0.0.1:9"`,
        `upstream = { password = "canary-4", nested = { api_key = "canary-5" } }`,
        `servers = [{ token = "canary-6" }]`,
        ``,
      ].join('\n'),
    )
    const host = await start()
    await host.app.host.load(folder)
    return host
  }

  it('stands for every secret of a plugin, marked or only named like one, in the answer and in the trail', async () => {
    await using host = await keeping()
    const { body } = await host.json('GET', '/api/config')
    expect(body.config.plugins.keeper).toEqual({
      bot_token: '***',
      pin: '***',
      proxy: 'http://***@127.0.0.1:9',
      upstream: { password: '***', nested: { api_key: '***' } },
      servers: [{ token: '***' }],
    })
    for (const key of ['pin', 'bot_token'])
      expect(
        (await host.json('POST', '/api/config/set', { key: `plugins.keeper.${key}`, value: 'canary-7' })).status,
      ).toBe(200)
    const trail = (await host.json('GET', '/api/audit/recent?limit=50')).body
    expect(JSON.stringify([trail, await host.json('GET', '/api/config')])).not.toContain('canary')
  })

  it.each([
    ['bot_token', '***', 'bot_token'],
    ['pin', '***', 'pin'],
    ['proxy', 'http://***@127.0.0.1:9', 'proxy'],
    ['upstream', { password: '***', host: 'x' }, 'upstream.password'],
    ['upstream', { nested: { api_key: '***' } }, 'upstream.nested.api_key'],
    ['upstream.nested.api_key', '***', 'upstream.nested.api_key'],
    ['upstream', { tokens: 1, secrets: ['***'] }, 'upstream.secrets'],
    ['upstream', { url: 'https://***@example.com' }, 'upstream.url'],
    ['servers', [{ token: '***' }], 'servers.0.token'],
  ])('is refused as the value of %s: %j', async (key, value, named) => {
    await using host = await keeping()
    const before = await readFile(file(), 'utf8')
    const { status, body } = await host.json('POST', '/api/config/set', { key: `plugins.keeper.${key}`, value })
    expect([status, body.error.message]).toEqual([
      400,
      expect.stringMatching(new RegExp(`plugins\\.keeper\\.${named}.*\\*\\*\\* is shown in place of a secret`)),
    ])
    expect(await readFile(file(), 'utf8')).toBe(before)
  })

  it('is a text like any other where no secret is', async () => {
    await using host = await keeping()
    const value = { greeting: '***', max_tokens: 5 }
    expect((await host.json('POST', '/api/config/set', { key: 'plugins.keeper.upstream', value })).status).toBe(200)
  })
})

describe('a configuration that is no file', () => {
  it('is refused at once when it is a pipe nobody writes to', async () => {
    await writeFile(file(), '')
    await using host = await start()
    await rm(file())
    spawnSync('mkfifo', [file()])
    const { status, body } = await host.json('POST', '/api/config/reload')
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('it is no file')])
    expect(
      (await host.json('POST', '/api/config/set', { key: 'log_level', value: 'warn' })).status,
    ).toBeGreaterThanOrEqual(400)
    expect((await host.fetch('/api/health')).status).toBe(200)
  })
})

describe('setting a key', () => {
  it('writes it, keeps comments, audits it and lets it hold at once', async () => {
    await writeFile(file(), '# how much\n[rate_limit]\nfailed_auth_per_minute = 7 # few\n', { mode: 0o600 })
    await using host = await start()
    const { status, body } = await host.json('POST', '/api/config/set', {
      key: 'rate_limit.tokens_per_minute',
      value: 40,
    })
    expect([status, body.status, body.changed]).toEqual([200, 'applied', ['rate_limit.tokens_per_minute']])
    const text = await readFile(file(), 'utf8')
    expect(text).toContain('# how much')
    expect(text).toContain('failed_auth_per_minute = 7 # few')
    expect(text).toContain('tokens_per_minute = 40')
    expect((await stat(file())).mode & 0o777).toBe(0o600)
    const answers = await Promise.all(Array.from({ length: 80 }, () => host.fetch('/api/health')))
    expect(answers.filter((answer) => answer.status === 429).length).toBeGreaterThanOrEqual(20)
  })

  it('refuses a key that no plugin reads, and names those that are read', async () => {
    await using host = await start()
    const { status, body } = await host.json('POST', '/api/config/set', {
      key: 'plugins.audit.retention_dayz',
      value: 1,
    })
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
    expect(body.error.message).toMatch(/retention_dayz: unknown key; the plugin knows .*retention_days/)
    expect(
      (await host.json('POST', '/api/config/set', { key: 'plugins.sessions.context_messages', value: 30 })).status,
    ).toBe(200)
  })

  it('accepts `path` for `key`, as older clients say it', async () => {
    await using host = await start()
    const { body } = await host.json('POST', '/api/config/set', { path: 'log_level', value: 'warn' })
    expect(body).toMatchObject({ status: 'applied', key: 'log_level', path: 'log_level', overridden_by: null })
    expect(await events(host)).toContainEqual(
      expect.stringMatching(/^configuration: change of log_level requested: log_level from "\w+" to "\w+"$/),
    )
  })

  it.each([
    ['an unknown key with the nearest one', { key: 'rate_limit.tokens_per_minut', value: 5 }, 400, /tokens_per_minute/],
    [
      'a wrong type with what was expected',
      { key: 'rate_limit.tokens_per_minute', value: 'many' },
      400,
      /whole number/,
    ],
    ['a number out of range', { key: 'rate_limit.tokens_per_minute', value: 0 }, 400, /from 1 to/],
    ['a missing value', { key: 'log_level' }, 400, /value/],
    ['a missing key', { value: 1 }, 400, /key/],
    ['a section', { key: 'rate_limit', value: {} }, 400, /section/],
    ['a key that reaches a prototype', { key: '__proto__.polluted', value: true }, 400, /key/],
    ['folders of code', { key: 'plugins.paths', value: ['/tmp/evil'] }, 403, /config\.toml/],
    ['private addresses', { key: 'outbound.allow', value: ['10.0.0.0/8'] }, 403, /config\.toml/],
    ['the way without a key', { key: 'allow_no_auth', value: true }, 403, /config\.toml/],
    ['a key of a provider', { key: 'providers.openai.api_key', value: 'sk-canary' }, 403, /vault/],
    ['further keys of one', { key: 'providers.openai.api_keys', value: ['sk-canary'] }, 403, /vault/],
    [
      'where its keys are sent',
      { key: 'providers.openai.base_url', value: 'http://evil.example' },
      403,
      /config\.toml/,
    ],
    [
      'where else its keys may be sent',
      { key: 'providers.openai.key_origins', value: ['http://evil.example'] },
      403,
      /config\.toml/,
    ],
    ['another variable as its key', { key: 'providers.openai.api_key_env', value: 'HOME' }, 403, /config\.toml/],
    ['programs that are run', { key: 'providers.claude-code.path', value: ['/tmp/evil'] }, 403, /config\.toml/],
    [
      'all providers at once',
      { key: 'providers', value: { openai: { base_url: 'http://evil.example' } } },
      400,
      /section/,
    ],
    [
      'one provider as a whole',
      { key: 'providers.openai', value: { base_url: 'http://evil.example' } },
      400,
      /section/,
    ],
    ['a plugin as a whole', { key: 'plugins.hello', value: { greeting: 'Hi' } }, 400, /section/],
    ['a plugin that is not loaded', { key: 'plugins.nobody.greeting', value: 'Hi' }, 400, /no plugin "nobody"/],
    ['folders with programs for agents', { key: 'plugins.shell.path', value: ['/tmp/evil'] }, 403, /config\.toml/],
    ['the folder the page is served from', { key: 'plugins.webchat.page_dir', value: '/etc' }, 403, /config\.toml/],
    [
      'where keys of searches are sent',
      { key: 'plugins.web.brave_url', value: 'http://evil.example' },
      403,
      /config\.toml/,
    ],
    [
      'a section of a plugin its schema refuses',
      { key: 'plugins.hello.greeting', value: 5 },
      400,
      /plugins\.hello\.greeting/,
    ],
  ])('refuses %s and changes nothing', async (_, body, status, message) => {
    await writeFile(file(), 'log_level = "error"\n')
    await using host = await start({
      plugins: ['audit', 'settings', 'agents', 'files', 'shell', 'web', 'webchat', 'providers', configured()],
    })
    const answer = await host.json('POST', '/api/config/set', body)
    expect(answer.status).toBe(status)
    expect(answer.body.error.message).toMatch(message)
    expect(answer.body.error.message).not.toContain(home)
    expect(await readFile(file(), 'utf8')).toBe('log_level = "error"\n')
    expect(await events(host)).toEqual([])
  })

  it.each(['', '  '])('does not take the key away while other machines are served: %j', async (value) => {
    await writeFile(file(), 'api_key = "a-key"\nlisten_addr = "0.0.0.0:0"\n')
    await using host = await start({ listen: false, config: {} })
    const { status, body } = await host.json(
      'POST',
      '/api/config/set',
      { key: 'api_key', value },
      { authorization: 'Bearer a-key' },
    )
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
    expect(await readFile(file(), 'utf8')).toContain('"a-key"')
  })

  it('says what waits for a restart', async () => {
    await using host = await start()
    const { body } = await host.json('POST', '/api/config/set', { key: 'http.request_timeout_ms', value: 9_000 })
    expect(body).toMatchObject({
      status: 'partial',
      changed: [],
      restart_required: true,
      restart_reasons: ['http.request_timeout_ms'],
    })
    const again = await host.json('GET', '/api/config')
    expect(again.body.restart_required).toEqual(['http.request_timeout_ms'])
    expect(again.body.config.http.request_timeout_ms).toBe(60_000)
  })
})

describe('a new key', () => {
  it('shuts the old one out at once, sockets opened with it too', async () => {
    await writeFile(file(), 'api_key = "old-key-1"\n')
    await using host = await start({ plugins: undefined as never, config: {} })
    const spawned = await host.json(
      'POST',
      '/api/agents',
      { manifest_toml: 'name = "a"\n[model]\nprovider = "builtin"\nmodel = "offline"\n' },
      { authorization: 'Bearer old-key-1' },
    )
    const {
      body: { protocol },
    } = await host.json('POST', '/api/auth/ws-ticket', undefined, { authorization: 'Bearer old-key-1' })
    const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${spawned.body.agent_id}/ws`, [
      'svc',
      protocol,
    ])
    await new Promise((resolve) => {
      socket.addEventListener('message', resolve, { once: true })
    })
    const closed = new Promise<CloseEvent>((resolve) => {
      socket.addEventListener('close', resolve, { once: true })
    })
    const answer = await host.json(
      'POST',
      '/api/config/set',
      { key: 'api_key', value: 'new-key-2' },
      { authorization: 'Bearer old-key-1' },
    )
    expect(answer.status).toBe(200)
    expect((await closed).code).toBe(1008)
    expect((await host.json('GET', '/api/config', undefined, { authorization: 'Bearer old-key-1' })).status).toBe(401)
    const config = await host.json('GET', '/api/config', undefined, { authorization: 'Bearer new-key-2' })
    expect(config.status).toBe(200)
    expect(JSON.stringify(config.body)).not.toContain('new-key-2')
  })
})

describe('reading the configuration again', () => {
  it('takes over what changed in the file', async () => {
    await using host = await start()
    await writeFile(file(), 'default_model = "m-1"\n')
    const { body } = await host.json('POST', '/api/config/reload')
    expect(body).toMatchObject({ status: 'applied', changed: ['default_model'] })
    expect((await host.json('GET', '/api/config')).body.config.default_model).toBe('m-1')
    expect((await host.json('POST', '/api/config/reload')).body.status).toBe('no_changes')
  })

  it('changes nothing when one line of the file is wrong, and says which', async () => {
    await using host = await start()
    await writeFile(file(), 'default_model = "m-2"\nlog_level = "loud"\n')
    const { status, body } = await host.json('POST', '/api/config/reload')
    expect(status).toBe(400)
    expect(body.error.message).toMatch(/^config\.toml:2.*log_level.*one of/)
    expect(body.error.details.problems).toMatchObject([{ key: 'log_level', line: 2 }])
    expect((await host.json('GET', '/api/config')).body.default_model).not.toBe('m-2')
  })

  it('does not say of a key that nobody knows that it holds', async () => {
    await using host = await start({ plugins: ['audit', 'settings', configured()] })
    await writeFile(file(), '[plugins.hello]\ngreting = "Moin"\n[plugins.helo]\ngreeting = "Moin"\n')
    const { body } = await host.json('POST', '/api/config/reload')
    expect(body).toMatchObject({ status: 'no_changes', changed: [] })
    expect(body.warnings.join('\n')).toMatch(/greting" is ignored[^]*no plugin "helo"/)
  })

  it('gives a plugin its new section and leaves the others alone', async () => {
    await using host = await start({ plugins: ['audit', 'settings', configured()] })
    await writeFile(file(), '[plugins.hello]\ngreeting = "Moin"\n')
    const { body } = await host.json('POST', '/api/config/reload')
    expect(body).toMatchObject({
      status: 'applied',
      changed: ['plugins.hello.greeting'],
      hot_actions_applied: ['hello'],
      failed: [],
    })
    expect((await host.json('GET', '/api/hello/Ada')).body).toMatchObject({ text: 'Moin, Ada!' })
  })
})

/** A plugin with a section of its own and a route that shows it. */
function configured(): string {
  return new URL('../../../playground/plugins/hello', import.meta.url).pathname
}

describe('the default provider', () => {
  const base = ['audit', 'settings', 'providers', 'providers/builtin', 'providers/openai-compatible']
  it('is read, chosen and tried', async () => {
    await using fake = await startFakeProvider()
    await using host = await start({
      plugins: base,
      config: { providers: { openai: { base_url: fake.url, api_key: 'test-key' } } },
    })
    expect((await host.json('PUT', '/api/config/provider', { provider: 'builtin' })).body).toMatchObject({
      provider: 'builtin',
      model: 'offline',
      auth_status: 'no_key_needed',
    })
    expect(
      (await host.json('PUT', '/api/config/provider', { provider: 'openai', model: 'fake-1' })).body,
    ).toMatchObject({ provider: 'openai', model: 'fake-1', auth_status: 'configured', base_url: fake.url })
    expect((await host.json('GET', '/api/config/provider')).body).toMatchObject({ provider: 'openai', model: 'fake-1' })
    expect(await readFile(file(), 'utf8')).toBe('default_provider = "openai"\ndefault_model = "fake-1"\n')
    expect((await host.json('POST', '/api/config/provider/test')).body).toMatchObject({
      status: 'ok',
      provider: 'openai',
    })
    expect(await events(host)).toEqual(
      expect.arrayContaining(['default provider set to openai, model fake-1, from builtin/offline']),
    )
  })
  it('is not chosen when there is none of that name, or nothing is said', async () => {
    await using host = await start({ plugins: base })
    expect((await host.json('PUT', '/api/config/provider', { provider: 'nobody' })).status).toBe(404)
    expect((await host.json('PUT', '/api/config/provider', {})).status).toBe(400)
    expect(await events(host)).toEqual([])
  })
})
