import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { ManualTimer } from '../../core/jobs/manual-timer.ts'
import { systemTimer } from '../../core/jobs/timer.ts'
import { turnPlugins } from '../plugins/plugin-test.ts'
import { eventually } from '../support/eventually.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { Shown, startPlatformServer } from '../support/platforms/http.ts'
import type { PlatformServer } from '../support/platforms/http.ts'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

// What a plugin does in the daemon, it does in a process of its own: the same code, and the answers are compared.

const TOKEN = 'a-long-secret'
const CONFIG_SECRET = 'open sesame, door of the fixture'
const modes = ['none', 'worker'] as const

const route = (method: string, path: string, handle: string, more = '') => `ctx.routes.add(defineRoute({
    method: '${method}', path: '/api/fixture/${path}', summary: 'A test', auth: 'public', effect: 'read', cost: 1, ${more}
    returns: v.any(), handle: async (input: any) => { ${handle} } }))`
const fixture = `import { secret } from 'svc/sdk'
${pluginText('fixture', {
  before: 'const heard: unknown[] = []; let runs = 0',
  members: `config_: 0, uses: { routes: ['/api/fixture/*'], tools: ['shout'], hooks: ['other:*'], tables: true, secrets: ['key'],
      hosts: ['127.0.0.1'], jobs: true }, outbound: 'operator', hooks: [gate('fixture:asked'), transform('fixture:changed')],
    migrations: [{ id: '1', sql: 'CREATE TABLE fixture_it (id TEXT, bytes BLOB)' }],`,
  setup: `
    const asked = gate('fixture:asked'); const changed = transform('fixture:changed')
    ${route(
      'POST',
      'use/:id',
      `
      await ctx.storage.setItem('a:b', { list: [1, { deep: true }] })
      await ctx.vault.write('key', 'hidden')
      await ctx.db.run\`INSERT INTO fixture_it (id, bytes) VALUES (\${input.params.id}, \${new Uint8Array([0, 255])})\`
      const answer = await ctx.fetch(ctx.config.url + '/x', { method: 'POST', body: 'hi' })
      ctx.log.warn('the phrase is ' + ctx.config.phrase)
      return { params: input.params, query: input.query, body: input.body, stored: await ctx.storage.getItem('a:b'),
        keys: await ctx.storage.getKeys(), missing: await ctx.storage.getItem('none'), secret: await ctx.vault.read('key'),
        rows: (await ctx.db.all\`SELECT id, bytes FROM fixture_it\`).map((row: any) => [row.id, [...row.bytes]]),
        fetched: [answer.status, await answer.text()], heard, runs, config: ctx.config }`,
      `params: v.object({ id: v.string() }), query: v.object({ n: v.pipe(v.string(), v.transform(Number)) }),
       body: v.object({ size: v.optional(v.number(), 7) }),`,
    )}
    ${route('GET', 'refuse', `throw new Refusal('conflict', 'not now', { details: { why: 'a test' } })`)}
    ${route('GET', 'events', `return (async function* () { for (const n of [1, 2, 3]) yield { event: 'n', data: String(n) } })()`)}
    ${route(
      'POST',
      'own-hooks',
      `
      await ctx.hooks.check(asked, { n: 1 })
      return { changed: await ctx.hooks.apply(changed, { n: 1 }) }`,
    )}
    ctx.tools.add(defineTool({ name: 'shout', description: 'Shouts', risk: 'read', labels: ['ExternalNetwork'],
      input: v.object({ text: v.pipe(v.string(), v.maxLength(5)) }), run: async ({ text }, { agentName }) => agentName + ': ' + text.toUpperCase() }))
    ctx.hooks.on(notify('other:happened'), (payload) => { heard.push(payload) })
    ctx.hooks.on(gate('other:starting'), ({ name }: any) => { if (name === 'bad') throw new Refusal('forbidden', 'bad may not start') })
    ctx.hooks.on(transform('other:built'), (value: any) => ({ ...value, text: value.text + '!' }))
    ctx.jobs.every('count', 1000, async () => { runs++ })
    ctx.metrics.counter('svc_fixture_total', 'A test').add(3)
    return {}`,
})}`
  .replace(
    'config: v.object({})',
    `config: v.object({ phrase: secret(v.string()), url: v.string(), size: v.optional(v.number(), 3) })`,
  )
  .replace('config_: 0, ', '')
const other = pluginText('other', {
  setup: `ctx.routes.add(defineRoute({ method: 'POST', path: '/api/other/:name', summary: 'A test', auth: 'public', effect: 'read',
      cost: 1, params: v.object({ name: v.string() }), returns: v.any(), handle: async ({ params: { name } }) => {
        await ctx.hooks.check(gate('other:starting'), { name })
        await ctx.hooks.emit(notify('other:happened'), { name, at: 1 })
        return await ctx.hooks.apply(transform('other:built'), { text: name, n: 1n < 2n })
      } }))
    ctx.hooks.on(gate('fixture:asked'), () => {})
    ctx.hooks.on(transform('fixture:changed'), ({ n }) => ({ n: n + 1 }))
    return {}`,
})

/** The provider and the channel of the guide. */
async function writeGuide(home: string): Promise<void> {
  const guide = await readFile(new URL('../../docs/plugins.md', import.meta.url), 'utf8')
  for (const [, name = '', text = ''] of guide.matchAll(
    /^```ts\n\/\/ ~\/\.svc\/plugins\/((?:echo|parley)\S*)\n(.*?)^```$/gms,
  )) {
    const file = join(home, 'plugins', name)
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(file, text)
  }
}

interface Stage extends AsyncDisposable {
  readonly host: TestHost
  readonly shown: Shown
  readonly timer: ManualTimer
}
async function openStage(mode: (typeof modes)[number]): Promise<Stage> {
  const home = await temporaryFolder()
  await writeGuide(home.path)
  await writePlugin(join(home.path, 'plugins/fixture'), fixture)
  await writePlugin(join(home.path, 'plugins/other'), other)
  const shown = new Shown()
  const timer = new ManualTimer(0)
  const server: PlatformServer = await startPlatformServer(({ json, headers }) => {
    if (json === undefined) return { status: 201, body: { hello: 'there' } }
    const { key, chat, text } = json as { key: string; chat: string; text: string }
    if (headers.authorization !== `Bearer ${TOKEN}`) return { status: 401 }
    shown.show({ id: `p-${shown.sent.length}`, chatId: chat, text, files: [], buttons: [], key })
    return { status: 200, body: { id: `p-${shown.sent.length}` } }
  })
  const host = await startHost({
    plugins: [...turnPlugins, 'settings', 'files', 'channels', 'webchat'],
    home: home.path,
    memory: true,
    // A channel that is not connected at once is tried again on its own timer.
    jobTimer: (plugin) => (plugin === 'fixture' ? timer : systemTimer),
    config: {
      default_provider: 'echo',
      default_model: 'plain',
      plugins: {
        isolated: mode === 'worker' ? ['fixture', 'echo', 'parley'] : [],
        fixture: { phrase: CONFIG_SECRET, url: server.origin },
      },
      channels: { parley: { token: TOKEN, base_url: server.origin, agent_name: 'ada', allowed_users: ['eve'] } },
    },
  })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "ada"' })
  // A message to a channel that is not loaded yet is answered half a minute later.
  await eventually(async () =>
    expect((await host.json('GET', '/api/channels/parley')).body).toMatchObject({ status: { state: 'connected' } }),
  )
  return {
    host,
    shown,
    timer,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
    },
  }
}

/** What a user of the plugins sees. */
async function useAll({ host, shown, timer }: Stage): Promise<Record<string, unknown>> {
  const answer = async (method: string, path: string, body?: unknown) => {
    const { status, body: found } = await host.json(method, path, body)
    return { status, body: found?.error ? { ...found.error, request_id: undefined } : found }
  }
  const call = { agentId: 'a', agentName: 'ada', sessionId: 's', turnId: 't', callId: 'c' }
  const signal = new AbortController().signal
  const webhook = async (id: string, token: string) =>
    (
      await host.fetch('/api/channels/parley/webhook', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ id, user: 'eve', text: `Message ${id}` }),
      })
    ).status
  await timer.advance(2000)
  return {
    hooks: [await answer('POST', '/api/other/good'), await answer('POST', '/api/other/bad')],
    own: await answer('POST', '/api/fixture/own-hooks'),
    used: await answer('POST', '/api/fixture/use/one?n=5', {}),
    wrong: await answer('POST', '/api/fixture/use/one?n=5', { size: 'big' }),
    refused: await answer('GET', '/api/fixture/refuse'),
    events: await (await host.fetch('/api/fixture/events')).text(),
    tool: await host.app.callTool('shout', { text: 'hey' }, { ...call, signal }),
    wrongTool: await host.app.callTool('shout', { text: 'too long' }, { ...call, signal }),
    config: (await host.json('GET', '/api/config')).body.config.plugins.fixture,
    metric: /^svc_fixture_total.*$/m.exec(host.app.daemon.metrics())?.[0],
    webhooks: [await webhook('m1', 'another'), await webhook('m1', TOKEN), await webhook('m1', TOKEN)],
    shown: (await shown.waitForSent(1)).map(({ chatId, text }) => [chatId, text]),
    logsSecret: host.log.join('').includes(CONFIG_SECRET),
    states: host.app.daemon
      .plugins()
      .filter(({ source }) => source !== 'built-in')
      .map(({ name, state, error }) => [name, state, error]),
  }
}

describe('the same plugins in the daemon and in processes of their own', () => {
  const found: Record<string, Record<string, unknown>> = {}
  beforeAll(async () => {
    for (const mode of modes) {
      await using stage = await openStage(mode)
      const all = JSON.stringify(await useAll(stage)).replaceAll(/"durationMs":[\d.]+|http:\/\/127[\d.:]+/g, (text) =>
        text.startsWith('http') ? 'ADDRESS' : '"durationMs":0',
      )
      found[mode] = JSON.parse(all) as Record<string, unknown>
    }
  })

  it('are loaded, and have the effects they are written for', () => {
    expect(found['none']).toMatchObject({
      hooks: [
        { status: 200, body: { text: 'good!', n: true } },
        { status: 403, body: { message: 'bad may not start' } },
      ],
      own: { status: 200, body: { changed: { n: 2 } } },
      used: {
        status: 200,
        body: {
          body: { size: 7 },
          query: { n: 5 },
          runs: 2,
          heard: [{ name: 'good', at: 1 }],
          fetched: [201, '{"hello":"there"}'],
        },
      },
      wrong: { status: 400 },
      refused: { status: 409, body: { details: { why: 'a test' } } },
      events: expect.stringContaining('data: 3'),
      tool: { text: 'ada: HEY', failed: false },
      wrongTool: { failed: true },
      config: { phrase: '***' },
      webhooks: [401, 200, 200],
      shown: [['eve', 'Message m1']],
      logsSecret: false,
    })
  })

  const aspects = ['hooks', 'own', 'used', 'wrong', 'refused', 'events', 'tool', 'wrongTool', 'config', 'metric']
  it.each([...aspects, 'webhooks', 'shown', 'logsSecret', 'states'])('answer alike: %s', (aspect) => {
    expect(found['worker']?.[aspect]).toEqual(found['none']?.[aspect])
  })
})
