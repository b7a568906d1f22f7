import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { ManualTimer } from '../../../core/jobs/manual-timer.ts'
import { byHand, toConfig } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { ChatPlatform } from '../channels/chat-platform.ts'
import { turnPlugins } from '../plugin-test.ts'

/** Nothing is looked for: the timers of plugins stand still, so what happens was told. */
const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

interface Stage {
  readonly fake: Awaited<ReturnType<typeof startFakeProvider>>
  readonly platform: ChatPlatform
  /** The daemon at which a job began, and how it ends. */
  readonly jobs: Map<string, { readonly daemon: string; readonly end: () => void }>
  /** `plugins`: keys of the section of this name. */
  start(name: string, plugins?: object): Promise<TestHost>
}
async function open(): Promise<Stage> {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const fake = await startFakeProvider()
  onTestFinished(() => fake[Symbol.asyncDispose]())
  const platform = new ChatPlatform()
  platform.install()
  const jobs: Stage['jobs'] = new Map()
  Reflect.set(globalThis, Symbol.for('svc.test.jobs'), {
    begun(job: string, daemon: string) {
      const { promise, resolve } = Promise.withResolvers<void>()
      jobs.set(job, { daemon, end: resolve })
      return promise
    },
  })
  return {
    fake,
    platform,
    jobs,
    async start(name, plugins = {}) {
      const timer = new ManualTimer(Date.parse('2026-01-01T00:00:00Z'))
      const host = await startHost({
        plugins: [
          ...turnPlugins,
          'providers/openai-compatible',
          'queue',
          'channels',
          folder('../channels/test-channel'),
          folder('./queue-worker'),
        ],
        config: toConfig(fake, {
          database_url: database.url,
          channels: { test_chat: { agent_name: 'assistant', allowed_users: ['ada'] } },
          plugins: { cluster: { name, notice_secs: 0 }, 'queue-worker': { name }, ...plugins },
        }),
        jobTimer: () => timer,
      })
      onTestFinished(() => host[Symbol.asyncDispose]())
      return host
    },
  }
}
const firstAgent = async (host: TestHost): Promise<string> => (await host.json('GET', '/api/agents')).body[0].id
const send = (host: TestHost, agent: string, message: string): Promise<Response> =>
  host.fetch(`/api/agents/${agent}/message/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  })
const channel = async (host: TestHost): Promise<string> =>
  (await host.json('GET', '/api/channels/test_chat')).body.status.state
const drain = (host: TestHost, what: 'drain' | 'undrain') => host.json('POST', `/api/cluster/members/self/${what}`)
const owned = async (host: TestHost, name: string): Promise<Record<string, number>> =>
  (await host.json('GET', '/api/cluster')).body.members.find((member: { name: string }) => member.name === name).owned

it('a daemon that drains hands over at once, ends what it has, and takes work again when it is asked to', async () => {
  const { fake, jobs, platform, start } = await open()
  const one = await start('one')
  await platform.connected()
  // Either of two daemons may take a job.
  await one.json('POST', '/api/jobs/first')
  await eventually(() => expect(jobs.get('first')?.daemon).toBe('one'))
  const two = await start('two')
  const answer = byHand()
  fake.script({ text: answer.text })
  const first = send(one, await firstAgent(one), 'one')
  await fake.request(0)
  expect(await owned(two, 'one')).toEqual({ accounts: 1, sessions: 1, turns: 1 })
  expect(await owned(two, 'two')).toEqual({})

  await drain(one, 'drain')
  await eventually(async () => expect(await owned(two, 'two')).toEqual({ accounts: 1 }))
  await eventually(async () => expect([await channel(one), await channel(two)]).toEqual(['standby', 'connected']))
  await one.json('POST', '/api/jobs/second')
  await eventually(() => expect(jobs.get('second')?.daemon).toBe('two'))
  for (const job of jobs.values()) job.end()
  answer.say('The end.')
  answer.end()
  expect(await (await first).text()).toContain('"stop":"done"')

  await drain(one, 'undrain')
  await drain(two, 'drain')
  await eventually(async () => expect(await owned(one, 'one')).toMatchObject({ accounts: 1 }))
  await one.json('POST', '/api/jobs/third')
  await eventually(() => expect(jobs.get('third')?.daemon).toBe('one'))
  jobs.get('third')?.end()
})

it('what a daemon has nobody to hand over to it keeps', async () => {
  const { jobs, platform, start } = await open()
  const one = await start('one')
  await platform.connected()
  await drain(one, 'drain')
  await one.json('POST', '/api/jobs/first')
  await eventually(() => expect(jobs.get('first')?.daemon).toBe('one'))
  jobs.get('first')?.end()
  expect(await channel(one)).toBe('connected')
})

it('a stream goes on to its end while its daemon stops', async () => {
  const { fake, start } = await open()
  const one = await start('one', { drain_ms: 60_000 })
  await start('two')
  const answer = byHand()
  fake.script({ text: answer.text })
  const stream = await send(one, await firstAgent(one), 'one')
  await fake.request(0)
  const stopped = one.stop()
  await eventually(async () => expect((await one.json('GET', '/api/ready')).status).toBe(503))
  answer.say('The end.')
  answer.end()
  const text = await stream.text()
  expect(text).toContain('The end.')
  expect(text).toContain('"stop":"done"')
  await stopped
})

it('a daemon that is drained to be stopped waits for its answers longer than one that is just stopped', async () => {
  const { fake, start } = await open()
  const one = await start('one', { drain_ms: 1 })
  const two = await start('two')
  const answer = byHand()
  fake.script({ text: answer.text })
  const stream = await send(one, await firstAgent(one), 'one')
  await fake.request(0)
  const { members } = (await two.json('GET', '/api/cluster')).body
  const { id } = members.find(({ name }: { name: string }) => name === 'one')
  await two.json('POST', `/api/cluster/members/${id}/drain`, { stop: true })
  await one.app.closed
  const stopped = one.stop()
  // It has left the port, and would have cut the answer by now.
  await eventually(() => expect(one.fetch('/api/ready')).rejects.toThrow())
  answer.say('The end.')
  answer.end()
  expect(await stream.text()).toContain('"stop":"done"')
  await stopped
})

it('whoever follows a turn of another daemon is told of the restart, and the turn goes on there', async () => {
  const { fake, start } = await open()
  const one = await start('one')
  const two = await start('two')
  const answer = byHand()
  fake.script({ text: answer.text })
  const agent = await firstAgent(two)
  const running = await send(two, agent, 'one')
  await fake.request(0)
  const relayed = await send(one, agent, 'two')
  const stopped = one.stop()
  expect(await relayed.text()).toContain('"message":"service restart"')
  answer.say('The end.')
  answer.end()
  expect(await running.text()).toContain('"stop":"done"')
  await eventually(async () => {
    const { messages } = (await two.json('GET', `/api/agents/${agent}/session`)).body
    expect(messages.at(-1).content).toBe('Hello from the fake.')
  })
  await stopped
})
