import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage, ShownSession } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { KEY, pair } from '../pairing/devices.ts'
import { openSharedChat } from '../../support/shared-chat.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { approvals: { agents: { 'loses-waiting': 'always' } } } } })
})
afterAll(() => stage[Symbol.asyncDispose]())

const posting = (title: string) => ({
  calls: [{ name: 'task_post', args: JSON.stringify({ title, description: title }) }],
})
const titles = async ({ host }: Pick<ChatStage, 'host'>): Promise<readonly string[]> =>
  (await host.json('GET', '/api/tasks')).body.tasks.map(({ title }: { title: string }) => title)
const results = async (of: Pick<ChatStage, 'session'>, agent: string): Promise<readonly (string | null)[]> =>
  (await of.session(agent)).messages.flatMap(({ tools = [] }) => tools.map(({ result }) => result))

describe('what is taken from an agent while its turn runs', () => {
  it.each([
    ['tools', 'PUT', 'tools', { capabilities_tools: [] }, 'not granted'],
    ['blocklist', 'PUT', 'tools', { tool_blocklist: ['task_post'] }, 'not granted'],
    ['mode', 'PUT', 'mode', { mode: 'observe' }, 'not granted'],
    ['suspended', 'PUT', 'suspend', undefined, 'is Paused'],
  ] as const)('is missing at its next tool call: %s', async (name, method, path, body, reason) => {
    const agent = await stage.spawn(`loses-${name}`)
    let status = 0
    stage.fake.script(
      posting(`${name} before`),
      async () => {
        ;({ status } = await stage.host.json(method, `/api/agents/${agent}/${path}`, body))
        return posting(`${name} after`)
      },
      { text: 'ended' },
    )
    await stage.post(`/api/agents/${agent}/message`, { message: 'go' })
    expect(status).toBe(200)
    expect((await results(stage, agent))[1]).toContain(reason)
    expect((await titles(stage)).filter((title) => title.startsWith(`${name} `))).toEqual([`${name} before`])
  })

  it('is missing at a call that a person approves afterwards', async () => {
    const agent = await stage.spawn('loses-waiting')
    stage.fake.script(posting('approved late'), { text: 'ended' })
    const answer = stage.post(`/api/agents/${agent}/message`, { message: 'go' })
    const approval = await eventually(async () => {
      const { body } = await stage.host.json('GET', '/api/approvals?status=pending')
      expect(body.approvals).toHaveLength(1)
      return body.approvals[0].id as string
    })
    await stage.host.json('PUT', `/api/agents/${agent}/mode`, { mode: 'observe' })
    expect((await stage.post(`/api/approvals/${approval}/approve`, {})).status).toBe(200)
    await answer
    expect((await results(stage, agent))[0]).toContain('not granted')
    expect(await titles(stage)).not.toContain('approved late')
  })
})

describe('a turn whose sender is no longer let in', () => {
  let locked: ChatStage
  let key = KEY
  const asOperator = (): Record<string, string> => ({ authorization: `Bearer ${key}` })
  const call = (method: string, path: string, body?: unknown, as = asOperator()) =>
    locked.host.json(method, path, body, as)
  beforeAll(async () => {
    locked = await openChat({ config: { api_key: KEY, pairing: { enabled: true } } })
  })
  afterAll(() => locked[Symbol.asyncDispose]())

  /** Sends a message, and lets what happens happen between two calls of its turn. */
  async function send(name: string, as: Record<string, string>, happens: () => Promise<unknown>) {
    const { body } = await call('POST', '/api/agents', {
      manifest_toml: `name = "${name}"\n[capabilities]\ntools = ["*"]\n`,
    })
    const after = async () => {
      await happens()
      return posting(`${name} after`)
    }
    locked.fake.script(posting(`${name} before`), after, { text: 'ended' })
    await call('POST', `/api/agents/${body.agent_id}/message`, { message: 'go' }, as)
    const session = (await call('GET', `/api/agents/${body.agent_id}/session`)).body as ShownSession
    const { tasks } = (await call('GET', '/api/tasks')).body
    return {
      results: session.messages.flatMap(({ tools = [] }) => tools.map(({ result }) => result)),
      titles: tasks.map(({ title }: { title: string }) => title).filter((title: string) => title.startsWith(name)),
    }
  }

  it('calls no more tools once its device is removed', async () => {
    const { id, bearer } = await pair(locked.host)
    const { results, titles } = await send('device', bearer, async () =>
      expect((await call('DELETE', `/api/pairing/devices/${id}`)).status).toBeLessThan(300),
    )
    expect(results[1]).toContain('no longer accepted')
    expect(titles).toEqual(['device before'])
  })

  it('goes on when another device is removed', async () => {
    const [first, second] = [await pair(locked.host), await pair(locked.host, 'tablet')]
    const { titles } = await send('other', first.bearer, () => call('DELETE', `/api/pairing/devices/${second.id}`))
    expect(titles).toEqual(expect.arrayContaining(['other before', 'other after']))
  })

  it('calls no more tools once the API key is another one', async () => {
    const { results, titles } = await send('key', asOperator(), async () => {
      expect((await call('POST', '/api/config/set', { key: 'api_key', value: `${KEY}-2` })).status).toBe(200)
      key = `${KEY}-2`
    })
    expect(results[1]).toContain('no longer accepted')
    expect(titles).toEqual(['key before'])
  })
})

it('is missing too when another daemon on the database takes it', async () => {
  await using shared = await openSharedChat()
  const one = await shared.start('one')
  const two = await shared.start('two')
  const agent = await one.spawn('loses-elsewhere')
  let status = 0
  shared.fake.script(
    posting('before'),
    async () => {
      ;({ status } = await two.host.json('PUT', `/api/agents/${agent}/mode`, { mode: 'observe' }))
      return posting('after')
    },
    { text: 'ended' },
  )
  await one.post(`/api/agents/${agent}/message`, { message: 'go' })
  expect(status).toBe(200)
  expect((await results(one, agent))[1]).toContain('not granted')
  expect(await titles(one)).toEqual(['before'])
})

it('a turn that another daemon accepted calls no more tools once its API key is another one', async () => {
  await using shared = await openSharedChat()
  const config = { api_key: KEY }
  const one = await shared.start('one', config)
  const two = await shared.start('two', config)
  let key = KEY
  const call = (stage: ChatStage, method: string, path: string, body?: unknown) =>
    stage.host.json(method, path, body, { authorization: `Bearer ${key}` })
  const manifest_toml = `name = "moves"\n[capabilities]\ntools = ["*"]\n`
  const agent = (await call(two, 'POST', '/api/agents', { manifest_toml })).body.agent_id
  const message = (stage: ChatStage, text: string) =>
    call(stage, 'POST', `/api/agents/${agent}/message`, { message: text })
  // From here on the session belongs to the second one, which runs what the first one accepts.
  await message(two, 'first')
  shared.fake.script(
    posting('before'),
    async () => {
      await call(two, 'POST', '/api/config/set', { key: 'api_key', value: `${KEY}-2` })
      key = `${KEY}-2`
      return posting('after')
    },
    { text: 'ended' },
  )
  await message(one, 'go')
  await expect.poll(async () => (await call(one, 'GET', '/api/tasks')).status).toBe(200)
  const { tasks } = (await call(two, 'GET', '/api/tasks')).body
  expect(tasks.map(({ title }: { title: string }) => title)).toEqual(['before'])
  // Who sends with the key that is in force now is heard.
  shared.fake.script(posting('again'), { text: 'ended' })
  await message(one, 'go on')
  expect((await call(two, 'GET', '/api/tasks')).body.tasks).toHaveLength(2)
})
