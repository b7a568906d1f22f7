import { UpstreamFailure } from 'svc/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { FakePlatform } from './platform.ts'

let test: PluginTest
let platform: FakePlatform
beforeAll(async () => {
  platform = new FakePlatform()
  platform.install({ signIn: (link) => platform.signIn(link), usesSignIn: () => platform.usesSignIn })
  test = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'system', 'channels'],
    config: {
      plugins: { channels: { webhook_max_bytes: 1024, webhook_rate_per_minute: 20, max_accounts: 6, max_bindings: 1 } },
      channels: {
        lark: { enabled: false, token: 'secret-of-the-file', agent_name: 'ada' },
        test_chat: [
          { account_id: 'of_file', token: 'file-token', enabled: false },
          { account_id: 'half', base_url: 'https://chat.example/x', agent_name: 'ada', allowed_user: ['@ada'] },
        ],
      },
    },
  })
})
afterAll(() => test[Symbol.asyncDispose]())

const request = (method: string, path: string, body?: unknown) =>
  test.request<Json>(method, `/api/channels${path}`, body)
const state = async (account = 'default'): Promise<string> =>
  (await request('GET', `/test_chat?account_id=${account}`)).body.status.state
const messageOf = ({ status, body }: { status: number; body: Json }) => [status, body.error?.message]

describe('the list of channels', () => {
  it('has the 44 names, and channels of plugins, whether or not they are configured', async () => {
    const { body } = await request('GET', '')
    expect(body).toMatchObject({ total: 45, configured_count: 2 })
    const names = body.channels.map(({ name }: Json) => name)
    expect(new Set(names).size).toBe(45)
    const rows = Object.fromEntries(body.channels.map((row: Json) => [row.name, row]))
    expect(rows.signal).toMatchObject({ enabled: false, has_token: false, available: false, configured: false })
    expect(rows.feishu).toMatchObject({ enabled: false, has_token: true, configured: true, category: 'enterprise' })
    expect(rows.guilded).toMatchObject({ available: false, state: 'retired' })
    const { status } = (await request('GET', '/guilded')).body
    expect(status).toMatchObject({ state: 'retired', last_error: 'Guilded closed in December 2025' })
    expect(rows.test_chat).toMatchObject({ available: true, display_name: 'Test chat', category: 'developer' })
    expect(rows.test_chat).toMatchObject({
      icon: 'TC',
      difficulty: 'Easy',
      setup_time: 'about 1 minute',
      setup_type: 'form',
      quick_setup: 'Write to the bot.',
      setup_steps: ['Write to the bot.', 'Copy its token.', expect.stringContaining('form')],
    })
    expect(rows.telegram).toMatchObject({ icon: 'Te', difficulty: 'Medium', setup_time: 'about 10 minutes' })
  })

  it('says what to do about an account that is not connected, and which of its fields nobody reads', async () => {
    const halfState = () => state('half')
    await expect.poll(halfState).toBe('misconfigured')
    const { status } = (await request('GET', '/test_chat?account_id=half')).body
    expect(status.help).toMatch(
      /correct \[channels\.test_chat\] in config\.toml and run .*config reload.*channels add test_chat --account half/,
    )
    expect(status.warnings).toContain('allowed_user: unknown field; did you mean "allowed_users"?')
    const tested = await request('POST', '/test_chat/test', { account_id: 'half' })
    expect(tested.body).toMatchObject({ status: 'error', message: 'token: is missing', help: status.help })
  })

  it('knows other names of a channel, and answers 404 for an unknown one', async () => {
    expect((await request('GET', '/stoat')).body).toMatchObject({ name: 'revolt', status: { state: 'not_configured' } })
    expect((await request('GET', '/nowhere')).status).toBe(404)
  })
})

describe('an account that is configured over the API', () => {
  it.each([
    [{}, 400, 'send the fields'],
    [{ base_url: 'https://other.example' }, 400, 'token'],
    [{ token: 'abc' }, 400, 'token: expected at least 4 characters'],
    [{ token: 'abcd', tokn: 'x' }, 400, 'tokn: unknown field'],
    [{ token: 'abcd', dm_policy: 'all' }, 400, 'dm_policy'],
    [{ token: 'abcd', mention_patterns: ['('] }, 400, 'expected a regular expression'],
    [{ token: 'abcd', mention_patterns: ['(?<=hey )you'] }, 400, 'mention_patterns.0: "(?<=hey )you" uses look-around'],
    [{ token: 'abcd', mention_patterns: ['(a|b)\\1'] }, 400, 'back references'],
    [{ token: 'abcd', mention_patterns: ['[(?=]\\(?=a{1001}'] }, 400, 'more than 1000 repeats'],
    [{ token: 'abcd', agent_name: 'nobody' }, 400, 'agent_name: There is no agent "nobody"'],
    [{ token: 'abcd', depth: 'deep' }, 400, 'depth'],
    [{ token: 'abcd', commands: { x: 1 } }, 400, 'commands: expected "all", "off" or a list'],
    [{ token: 'abcd', account_id: 'of_file' }, 409, 'config.toml'],
  ])('%j is refused with %i and says why', async (body, status, message) => {
    expect(messageOf(await request('POST', '/test_chat/configure', body))).toEqual([
      status,
      expect.stringContaining(message),
    ])
  })
  it('is refused for a channel without an adapter, and for one that nobody knows', async () => {
    expect((await request('POST', '/signal/configure', { token: 'abcd' })).status).toBe(409)
    expect((await request('POST', '/nowhere/configure', { token: 'abcd' })).status).toBe(404)
  })

  it('connects at once, shows no secret, and is gone when it is removed', async () => {
    const opened = platform.nextOpen()
    const { body } = await request('POST', '/test_chat/configure', {
      account_id: 'default',
      fields: { token: 'over-the-api', rooms: 'one, two', depth: '3', allowed_users: ['@ada'], commands: ['off'] },
    })
    expect(body).toMatchObject({ status: 'configured', activated: true, started_channels: ['test_chat'] })
    expect((await opened).config).toMatchObject({ token: 'over-the-api', rooms: ['one', 'two'], depth: 3 })
    expect(await state()).toBe('connected')
    const view = (await request('GET', '/test_chat?account_id=default')).body
    expect(view.config).toMatchObject({ token: '***', rooms: ['one', 'two'], allowed_users: ['@ada'] })
    expect(view.config.commands).toBe('off')
    expect(view.fields.find(({ key }: Json) => key === 'commands')).toMatchObject({
      type: 'list',
      options: ['all', 'off'],
    })
    const listed = { account_id: 'default', fields: { commands: 'new, stop' } }
    expect((await request('POST', '/test_chat/configure', listed)).status).toBe(200)
    const changed = (await request('GET', '/test_chat?account_id=default')).body
    expect(changed.config.commands).toEqual(['new', 'stop'])
    expect(JSON.stringify(view)).not.toContain('over-the-api')
    expect(view.fields.find(({ key }: Json) => key === 'token')).toMatchObject({
      type: 'secret',
      required: true,
      has_value: true,
      placeholder: '',
      env_var: null,
    })
    const removed = await request('DELETE', '/test_chat/configure?account_id=default')
    expect(removed.body).toMatchObject({ status: 'removed', channel: 'test_chat' })
    expect(platform.links.at(-1)?.signal.aborted).toBe(true)
    expect((await request('GET', '/test_chat?account_id=default')).status).toBe(404)
  })

  it('has its secrets in the vault when config.toml has the rest, and nothing else', async () => {
    const half = (fields: object) => request('POST', '/test_chat/configure', { account_id: 'half', fields })
    expect((await half({ token: 'in-the-vault', base_url: 'https://evil.example' })).status).toBe(409)
    expect((await half({ token: 'abc' })).status).toBe(400)
    const opened = platform.nextOpen()
    expect((await half({ token: 'in-the-vault' })).body).toMatchObject({ activated: true })
    expect((await opened).config).toMatchObject({ token: 'in-the-vault', base_url: 'https://chat.example/x' })
    const view = (await request('GET', '/test_chat?account_id=half')).body
    expect(view.config).toMatchObject({ token: '***', agent_name: 'ada' })
    await request('PUT', '/test_chat/disable?account_id=half')
  })

  it('keeps its secrets from another address', async () => {
    await request('POST', '/test_chat/configure', { account_id: 'moved', enabled: false, token: 'abcdef' })
    const move = (body: object) => request('POST', '/test_chat/configure', { account_id: 'moved', ...body })
    expect(messageOf(await move({ base_url: 'https://evil.example' }))).toEqual([
      400,
      expect.stringContaining('send token again'),
    ])
    expect((await move({ base_url: 'https://evil.example', token: 'ghijkl' })).status).toBe(200)
    expect((await move({ depth: 2, token: '***' })).status).toBe(200)
    expect((await request('DELETE', '/test_chat/configure?account_id=moved')).status).toBe(200)
  })

  it('gets no field that only the file may set', async () => {
    const open = (body: object) =>
      request('POST', '/test_chat/configure', { account_id: 'open', token: 'abcd', ...body })
    expect(messageOf(await open({ trusts_everybody: true }))).toEqual([
      403,
      expect.stringContaining('in the file only'),
    ])
    expect(messageOf(await open({ trusts_everybody: 'true' }))[0]).toBe(403)
    expect((await open({ enabled: false, trusts_everybody: false })).status).toBe(200)
    expect((await request('DELETE', '/test_chat/configure?account_id=open')).status).toBe(200)
  })

  it('is switched off and on, and tries again then', async () => {
    await request('POST', '/test_chat/configure', { account_id: 'switched', enabled: false, token: 'wrong-token' })
    expect(await state('switched')).toBe('disabled')
    const query = '?account_id=switched'
    expect((await request('PUT', `/test_chat/enable${query}`)).body).toEqual({
      status: 'enabled',
      channel: 'test_chat',
    })
    await expect.poll(() => state('switched')).toBe('needs_login')
    const { status } = (await request('GET', `/test_chat${query}`)).body
    expect(status.last_error).toBe('the token *** was refused')
    expect((await request('PUT', `/test_chat/disable${query}`)).body.status).toBe('disabled')
    expect(await state('switched')).toBe('disabled')
    expect((await request('PUT', '/test_chat/enable?account_id=of_file')).status).toBe(409)
    await request('DELETE', `/test_chat/configure${query}`)
  })
})

describe('a request of the platform', () => {
  const path = '/api/channels/test_chat/webhook/hooked'
  const post = (token: string, body: Uint8Array | string = '{}', to = path) =>
    test.fetch(to, { method: 'POST', headers: { 'x-token': token }, body: body as string })
  const openHooked = async () => {
    const opened = platform.nextOpen()
    await request('POST', '/test_chat/configure', { account_id: 'hooked', token: 'hook-secret' })
    await opened
    await expect.poll(() => state('hooked')).toBe('connected')
  }

  it('is answered by the adapter, without the API key, with its raw body', async () => {
    await openHooked()
    const answer = await post('hook-secret', '{ "a" :1}')
    expect([answer.status, await answer.text()]).toEqual([200, '9 bytes'])
    const asked = await test.fetch(`${path}?challenge=42&challenge=43`)
    expect([asked.status, await asked.text()]).toEqual([200, '42'])
  })

  it('is refused with a fixed text: unknown, not signed, too large', async () => {
    const wrong = await post('wrong-secret')
    expect([wrong.status, await wrong.text()]).toEqual([401, expect.stringContaining('not signed as it has to be')])
    const audit = async () => JSON.stringify((await test.request<Json>('GET', '/api/audit/recent?limit=500')).body)
    await expect.poll(audit).toContain('a wrong signature of a chat platform')
    const { body } = await request('GET', '/test_chat?account_id=hooked')
    expect(body.status.warnings).toContainEqual(expect.stringMatching(/webhook are refused.*\(1 since it connected\)/))
    for (const to of [
      '/api/channels/nowhere/webhook',
      '/api/channels/test_chat/webhook',
      '/api/channels/signal/webhook',
    ])
      expect((await post('hook-secret', '{}', to)).status).toBe(404)
    expect((await post('hook-secret', 'x'.repeat(2000))).status).toBe(413)
  })

  it('is to be sent again while its account is being connected, as during a reload', async () => {
    const { onOpen } = platform
    const held = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    platform.onOpen = async () => {
      begun.resolve()
      await held.promise
    }
    const reloaded = request('POST', '/reload')
    await begun.promise
    const answer = await post('hook-secret')
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
    platform.onOpen = onOpen
    held.resolve()
    await reloaded
    await expect.poll(() => state('hooked')).toBe('connected')
    expect((await post('hook-secret')).status).toBe(200)

    await request('PUT', '/test_chat/disable?account_id=hooked')
    expect((await post('hook-secret')).status).toBe(404)
    await request('PUT', '/test_chat/enable?account_id=hooked')
    await expect.poll(() => state('hooked')).toBe('connected')
  })

  it('is limited by account, and wrong signatures by address', async () => {
    const statuses = new Set<number>()
    for (let sent = 0; sent < 40; sent++) statuses.add((await post('hook-secret')).status)
    expect([...statuses]).toEqual([200, 429])
    await request('DELETE', '/test_chat/configure?account_id=hooked')
    expect((await post('hook-secret')).status).toBe(404)
  })
})

it('names of channels and states are in the configuration and the metrics', async () => {
  const { body } = await test.request<Json>('GET', '/api/config')
  expect(body.channels_configured).toEqual(['feishu', 'test_chat'])
  const opened = platform.nextOpen()
  await request('POST', '/test_chat/configure', { account_id: 'counted', token: 'abcd' })
  await opened
  await expect.poll(() => state('counted')).toBe('connected')
  const metrics = await test.metrics('svc_channels_accounts')
  expect([...metrics]).toEqual([['svc_channels_accounts{channel="test_chat",state="connected"}', 1]])
  await request('DELETE', '/test_chat/configure?account_id=counted')
})

describe('signing in with a QR code', () => {
  it('goes from pending over scanned to authenticated, and connects the account then', async () => {
    let hasSecret = false
    const scanned = Promise.withResolvers<void>()
    const confirmed = Promise.withResolvers<void>()
    platform.onOpen = async () => {
      if (!hasSecret) throw new UpstreamFailure('test_chat', 'nobody signed in', { reason: 'auth', retry: 'never' })
    }
    platform.signIn = async function* (link) {
      yield { status: 'pending', payload: 'code-to-scan' }
      await scanned.promise
      yield { status: 'scanned' }
      await confirmed.promise
      await link.secrets.write('session', 'obtained-by-the-adapter')
      hasSecret = true
      yield { status: 'authenticated' }
    }
    await request('POST', '/test_chat/configure', { account_id: 'phone', token: 'abcd-efgh-ijkl' })
    await expect.poll(() => state('phone')).toBe('needs_login')
    expect((await request('GET', '/test_chat?account_id=phone')).body).toMatchObject({
      sign_in: true,
      has_token: false,
      account_list: expect.arrayContaining([expect.objectContaining({ account_id: 'phone', has_token: false })]),
    })
    const { body: started } = await request('POST', '/test_chat/qr/start?account_id=phone')
    expect(started).toMatchObject({ available: true, status: 'pending', qr_payload: 'code-to-scan', connected: false })
    expect(started.qr_data_url).toMatch(/^data:image\/svg\+xml;base64,/)
    const path = `/test_chat/qr/status?account_id=phone&session_id=${started.session_id}`
    const status = async () => (await request('GET', path)).body.status
    scanned.resolve()
    await expect.poll(status).toBe('scanned')
    confirmed.resolve()
    await expect.poll(status).toBe('authenticated')
    await expect.poll(() => state('phone')).toBe('connected')
    platform.warnings = ['a room is not read: abcd-efgh-ijkl']
    const { account_list: accounts } = (await request('GET', '/test_chat?account_id=phone')).body
    expect(accounts.find((account: { account_id: string }) => account.account_id === 'phone')).toMatchObject({
      has_token: true,
      status: { warnings: expect.arrayContaining(['a room is not read: ***']) },
    })
    platform.warnings = []
    platform.onOpen = async () => undefined
    await request('DELETE', '/test_chat/configure?account_id=phone')
  })

  it('is offered only for a configuration that has it', async () => {
    platform.usesSignIn = false
    expect((await request('GET', '/test_chat')).body.sign_in).toBe(false)
    platform.usesSignIn = true
    expect((await request('GET', '/test_chat')).body.sign_in).toBe(true)
  })

  it('is not there for a channel without it, and a failed one says why', async () => {
    expect((await request('POST', '/signal/qr/start')).body).toMatchObject({ available: false })
    await request('POST', '/test_chat/configure', { account_id: 'phone', token: 'abcd', enabled: false })
    const missing = new Error("Cannot find package '@scope/sdk' imported from /opt/svc/dist/index.js")
    for (const [error, message] of [
      [new Error('the phone is off'), 'the phone is off'],
      [
        Object.assign(missing, { code: 'ERR_MODULE_NOT_FOUND' }),
        'the package @scope/sdk is not installed: run "npm install @scope/sdk" where svc is installed',
      ],
    ] as const) {
      platform.signIn = async function* () {
        throw error
      }
      expect((await request('POST', '/test_chat/qr/start?account_id=phone')).body).toMatchObject({
        expired: true,
        message: `The sign-in ended: ${message}`,
      })
    }
    await request('DELETE', '/test_chat/configure?account_id=phone')
  })
})

describe('a test of a channel', () => {
  it('answers 200 with how it went, and 404 for an unknown channel', async () => {
    await request('POST', '/test_chat/configure', { account_id: 'tested', enabled: false, token: 'abcd' })
    const run = (path: string, body?: object) => request('POST', `${path}/test`, body)
    expect((await run('/test_chat', { account_id: 'tested' })).body).toEqual({
      status: 'ok',
      message: 'The credentials are accepted: @bot.',
    })
    await request('POST', '/test_chat/configure', { account_id: 'tested', token: 'wrong-token' })
    expect((await run('/test_chat', { account_id: 'tested' })).body).toEqual({
      status: 'error',
      message: 'the token is wrong',
      help: expect.stringContaining('channels add test_chat --account tested') as string,
    })
    expect((await run('/signal')).body).toMatchObject({ status: 'error' })
    const unknown = await run('/nowhere')
    expect([unknown.status, unknown.body.status]).toEqual([404, 'error'])
    await request('DELETE', '/test_chat/configure?account_id=tested')
  })
})

it('no more accounts and bindings than the configuration permits', async () => {
  const statuses: number[] = []
  for (const id of ['one', 'two', 'three', 'four']) {
    const body = { account_id: id, token: 'abcd', enabled: false }
    statuses.push((await request('POST', '/test_chat/configure', body)).status)
  }
  expect(statuses).toEqual([200, 200, 200, 409])
  for (const id of ['one', 'two', 'three']) await request('DELETE', `/test_chat/configure?account_id=${id}`)
  await test.spawn('bound')
  const bind = (peer: string) =>
    test.request('POST', '/api/bindings', { agent: 'bound', match_rule: { channel: 'test_chat', peer_id: peer } })
  expect([(await bind('1')).status, (await bind('2')).status]).toEqual([201, 409])
})

it('every change is in the audit log', async () => {
  const { body } = await test.request<Json>('GET', '/api/audit/recent?limit=200')
  const details = body.entries.map((entry: Json) => entry.details)
  for (const part of [
    'configured: ',
    'removed',
    'enabled',
    'disabled',
    'connected for the first time',
    'cannot connect',
  ])
    expect(details).toContainEqual(expect.stringContaining(part))
  expect(JSON.stringify(details)).not.toContain('over-the-api')
})
