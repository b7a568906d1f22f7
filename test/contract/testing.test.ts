import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPlugin } from 'svc/testing'
import { describe, expect, it } from 'vitest'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

const hello = fileURLToPath(new URL('../../playground/plugins/hello', import.meta.url))

describe('svc/testing', () => {
  it('starts a daemon with one plugin: requests, tools, what it registered', async () => {
    await using test = await startPlugin({ plugin: hello, config: { plugins: { hello: { greeting: 'Welcome' } } } })
    expect(await test.request('GET', '/api/hello/Ada')).toMatchObject({
      status: 200,
      body: { text: 'Welcome, Ada!', greeted: 1 },
    })
    expect(await test.request('GET', '/api/hello/nobody')).toMatchObject({
      status: 404,
      body: { error: { code: 'greeting_not_found' } },
    })
    expect(await test.callTool('hello', { name: 'Ada' })).toMatchObject({ failed: false, text: 'Welcome, Ada! (2)' })
    expect(await test.callTool('hello', {})).toMatchObject({ failed: true })
    expect(test.registered()).toEqual({
      routes: ['GET /api/hello/:name'],
      hooks: ['notify agents:spawned'],
      tools: ['hello'],
      jobs: [],
      metrics: [],
    })
    await test.reload()
    expect(await test.request('GET', '/api/hello/Ada')).toMatchObject({ body: { greeted: 3 } })
  })

  it('answers an agent with a model that says what the test tells it to, and runs the tools it calls', async () => {
    await using test = await startPlugin({ plugin: hello })
    const manifest_toml = 'name = "grace"\n[capabilities]\ntools = ["*"]\n'
    const { body } = await test.request('POST', '/api/agents', { manifest_toml })
    const { agent_id } = body as { agent_id: string }
    test.model.answer({ calls: [{ tool: 'hello', args: { name: 'Ada' } }] }, 'I greeted Ada.')
    const answer = await test.request('POST', `/api/agents/${agent_id}/message`, { message: 'Greet Ada' })
    expect(answer).toMatchObject({ status: 200, body: { response: 'I greeted Ada.' } })
    expect(JSON.stringify(test.model.requests.at(-1)?.turns)).toContain('Hello, Ada! (1)')
  })

  it('moves the clock of jobs, counts metrics, and takes everything back', async () => {
    await using folder = await temporaryFolder()
    const text = pluginText('clockwork', {
      setup: `const runs = ctx.metrics.counter('svc_clockwork_runs_total', 'Runs of the job')
    ctx.jobs.every('tick', 60_000, async () => { runs.add(1, { job: 'tick' }) })
    ctx.jobs.cron('nightly', '0 3 * * *', async () => { runs.add(1, { job: 'nightly' }) })
    ctx.jobs.every('fails', 7_200_000, async () => { throw new Error('planned') })
    return {}`,
    })
    const test = await startPlugin({ plugin: await writePlugin(join(folder.path, 'clockwork'), text) })
    expect(test.registered().jobs).toEqual(['fails (every 7200000 ms)', 'nightly (0 3 * * *)', 'tick (every 60000 ms)'])
    await test.advance(3_600_000)
    expect(await test.metrics('svc_clockwork')).toEqual(new Map([['svc_clockwork_runs_total{job="tick"}', 60]]))
    await test.advance(2 * 3_600_000)
    expect((await test.metrics('svc_clockwork')).get('svc_clockwork_runs_total{job="nightly"}')).toBe(1)
    expect(test.defects.splice(0).map(({ message }) => message)).toEqual(['plugin "clockwork", job fails: planned'])
    await test.unload()
    expect(test.registered()).toEqual({ routes: [], hooks: [], tools: [], jobs: [], metrics: [] })
    await test[Symbol.asyncDispose]()
    expect(existsSync(test.home)).toBe(false)
  })

  it('announces that it listens, and waits until its channels are connected', async () => {
    await using folder = await temporaryFolder()
    const adapter = `{
      config: v.object({}),
      capabilities: { dialect: 'plain', maxLength: 100, lengthUnit: 'characters', idempotentSend: true, rate: {} },
      async open(link) {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return { ...waitForEnd(link), send: async () => ({}) }
      },
      probe: async () => ({ account: 'lake' }),
    }`
    const text = `import * as v from 'valibot'
import { defineAdapter, defineChannel, waitForEnd } from 'svc/channels'
export default defineChannel('1.0.0', {
  name: 'lake', title: 'Lake', category: 'messaging', description: 'Lake',
  load: async () => ({ default: defineAdapter(${adapter}) }),
})`
    await using test = await startPlugin({
      plugin: await writePlugin(join(folder.path, 'channel-lake'), text),
      config: { channels: { lake: { agent_name: 'helper' } } },
    })
    const state = async () => (await test.request('GET', '/api/channels/lake')).body
    expect(await state()).toMatchObject({ status: { state: 'connected' } })
    await test.reload()
    expect(await state()).toMatchObject({ status: { state: 'connected' } })
  })

  it('says why a plugin cannot be loaded, and leaves nothing behind', async () => {
    await using folder = await temporaryFolder()
    const text = pluginText('wrong', { setup: `throw new Error('planned')` })
    const plugin = await writePlugin(join(folder.path, 'wrong'), text)
    await expect(startPlugin({ plugin })).rejects.toThrow('wrong is not loaded: setup failed: planned')
    await expect(startPlugin({ plugin: join(folder.path, 'nothing') })).rejects.toThrow('holds no plugin')
  })

  it('fails a test that leaves a defect', async () => {
    await using folder = await temporaryFolder()
    const text = pluginText('defective', {
      setup: `ctx.jobs.every('fails', 1_000, async () => { throw new Error('planned') }); return {}`,
    })
    const test = await startPlugin({ plugin: await writePlugin(join(folder.path, 'defective'), text) })
    await test.advance(1_000)
    await expect(test[Symbol.asyncDispose]()).rejects.toThrow('plugin "defective", job fails: planned')
  })
})
