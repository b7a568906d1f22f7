import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { startHost } from '../support/host.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let stage: ChatStage
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

let count = 0
const spawn = (more = ''): Promise<string> => stage.spawn(`agent-${count++}`, ['*'], more)
const put = (id: string, command: string) => stage.host.json('PUT', `/api/agents/${id}/${command}`)
const state = async (id: string): Promise<string> => (await stage.host.json('GET', `/api/agents/${id}`)).body.state
const message = (id: string) => stage.host.json('POST', `/api/agents/${id}/message`, { message: 'hello' })

describe('the states of an agent', () => {
  it('lead from Running to Paused and back, to Stopped and back', async () => {
    const id = await spawn()
    const steps = [
      ['suspend', 'suspended', 'Paused'],
      ['resume', 'running', 'Running'],
      ['stop', 'stopped', 'Stopped'],
      ['start', 'started', 'Running'],
      ['suspend', 'suspended', 'Paused'],
      ['stop', 'stopped', 'Stopped'],
    ] as const
    for (const [command, status, now] of steps) {
      expect(await put(id, command)).toMatchObject({ status: 200, body: { status, agent_id: id, state: now } })
      expect(await state(id)).toBe(now)
    }
  })

  it.each([
    ['stop', 'suspend'],
    ['stop', 'resume'],
    ['suspend', 'start'],
  ])('after %s, %s is 409 and says what is possible', async (first, second) => {
    const id = await spawn()
    await put(id, first)
    const before = await state(id)
    const { status, body } = await put(id, second)
    expect([status, body.error.code]).toEqual([409, 'conflict'])
    expect(body.error.details).toEqual({ state: before, command: second, allowed: expect.any(Array) })
    expect(await state(id)).toBe(before)
  })

  it.each(['suspend', 'resume', 'start', 'stop'])(
    '%s twice is 200 and leaves one entry in the audit log at most',
    async (command) => {
      const id = await spawn()
      if (command === 'resume') await put(id, 'suspend')
      if (command === 'start') await put(id, 'stop')
      for (let time = 0; time < 3; time++) expect((await put(id, command)).status).toBe(200)
      const { entries } = (await stage.host.json('GET', `/api/audit/recent?agent_id=${id}`)).body
      expect(entries.filter((entry: { details: string }) => entry.details.includes(`${command}: `))).toHaveLength(1)
    },
  )

  it.each(['suspend', 'resume', 'start', 'stop'])('%s of an unknown agent is 404, of no agent 400', async (command) => {
    expect((await put(nobody, command)).status).toBe(404)
    expect((await put('x', command)).status).toBe(400)
  })

  it('many moves at once end in one of their states, each of them allowed', async () => {
    const id = await spawn()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => put(id, ['suspend', 'resume', 'stop', 'start'][index % 4] ?? 'stop')),
    )
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    expect(['Running', 'Paused', 'Stopped']).toContain(await state(id))
  })
})

describe('an agent that does not run', () => {
  it.each([
    ['suspend', 'resume'],
    ['stop', 'start'],
  ])('after %s takes no messages until %s', async (away, back) => {
    const id = await spawn()
    await put(id, away)
    const refused = await message(id)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    expect(refused.body.error.message).toContain(`${back} it first`)
    expect((await stage.host.json('GET', `/api/agents/${id}/session`)).body.message_count).toBe(0)
    await put(id, back)
    expect((await message(id)).status).toBe(200)
  })

  it('is what it was after a restart', async () => {
    await using first = await startHost({ plugins: ['audit', 'agents'] })
    const ids = await Promise.all(
      ['one', 'two', 'three'].map(
        async (name) => (await first.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })).body.agent_id,
      ),
    )
    await first.json('PUT', `/api/agents/${ids[0]}/suspend`)
    await first.json('PUT', `/api/agents/${ids[1]}/stop`)
    await first.stop()
    await using second = await startHost({ plugins: ['audit', 'agents'], home: first.home })
    const states = await Promise.all(ids.map(async (id) => (await second.json('GET', `/api/agents/${id}`)).body.state))
    expect(states).toEqual(['Paused', 'Stopped', 'Running'])
  })
})

it('an agent whose making was cut short by a crash is ready after the restart, its workspace too', async () => {
  const plugins = ['audit', 'agents', 'files']
  await using first = await startHost({ plugins })
  const [made, cloned, disabled] = await Promise.all(
    ['made', 'cloned', 'disabled'].map(
      async (name) =>
        (
          await first.json('POST', '/api/agents', {
            manifest_toml: `name = "${name}"\nenabled = ${name !== 'disabled'}`,
          })
        ).body.agent_id,
    ),
  )
  await first.json('PUT', `/api/agents/${made}/files/SOUL.md`, { content: '# of the original' })
  await first.stop()
  const db = new Sqlite(join(first.home, 'data', 'svc.db'))
  db.prepare("UPDATE agents_agent SET state = 'Initializing'").run()
  db.prepare('UPDATE agents_agent SET cloned_from = ? WHERE id = ?').run(made, cloned)
  db.close()
  await rm(join(first.home, 'data', 'workspaces', cloned), { recursive: true, force: true })
  await using second = await startHost({ plugins, home: first.home })
  const states = await Promise.all(
    [made, cloned, disabled].map(async (id) => (await second.json('GET', `/api/agents/${id}`)).body.state),
  )
  expect(states).toEqual(['Running', 'Running', 'Stopped'])
  expect((await second.json('GET', `/api/agents/${cloned}/files/SOUL.md`)).body.content).toBe('# of the original')
})

it.each(['PUT /api/agents/:id/stop', 'POST /api/agents/bulk/stop'])(
  '%s cancels what an agent does, and keeps what was said',
  async (row) => {
    const id = await spawn()
    stage.fake.script({ text: ['begun ', 'and never ended'], fault: 'stall' })
    const stream = await stage.post(`/api/agents/${id}/message/stream`, { message: 'hello' })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    let seen = ''
    while (!seen.includes('begun')) seen += (await reader?.read())?.value ?? ''
    const [method = '', path = ''] = row.split(' ')
    await stage.host.json(method, path.replace(':id', id), path.includes(':id') ? undefined : [id])
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) seen += part.value
    expect((await stage.session(id)).messages.at(-1)).toMatchObject({
      role: 'Assistant',
      mark: 'cancelled',
      content: expect.stringContaining('begun'),
    })
    expect((await stage.host.json('GET', `/api/agents/${id}/metrics`)).body.turns).toEqual({ cancelled: 1 })
  },
)

describe('PUT /api/agents/{id}/mode', () => {
  it('Stable pins the model: a later change of the default does not reach it; Normal lets go', async () => {
    await using fake = await startFakeProvider()
    await using first = await openChat({ fake })
    const pinned = await first.spawn('pinned')
    const free = await first.spawn('free')
    expect((await first.host.json('PUT', `/api/agents/${pinned}/mode`, { mode: 'Stable' })).body).toEqual({
      status: 'updated',
      mode: 'Stable',
      agent_id: pinned,
    })
    await first.host.stop()
    await using second = await openChat({ fake, home: first.host.home, config: { default_model: 'fake-2' } })
    const model = async (id: string) => (await second.host.json('GET', `/api/agents/${id}`)).body.model.model
    expect([await model(pinned), await model(free)]).toEqual(['fake-1', 'fake-2'])
    const asked = async (id: string) => {
      const from = fake.requests.length
      expect((await second.post(`/api/agents/${id}/message`, { message: 'hi' })).status).toBe(200)
      return fake.requests[from]?.body?.model
    }
    expect([await asked(pinned), await asked(free)]).toEqual(['fake-1', 'fake-2'])
    await second.host.json('PUT', `/api/agents/${pinned}/mode`, { mode: 'Normal' })
    expect([await model(pinned), await asked(pinned)]).toEqual(['fake-2', 'fake-2'])
  })

  it('Stable refuses what would move the pin, and lets the rest change', async () => {
    const id = await spawn('[model]\nprovider = "openai"\nmodel = "fake-1"')
    const at = `/api/agents/${id}`
    await stage.host.json('PUT', `${at}/mode`, { mode: 'Stable' })
    for (const [method, path, body] of [
      ['PUT', '/model', { model: 'other' }],
      ['PATCH', '', { model: 'other' }],
      ['PATCH', '/config', { provider: 'groq' }],
      ['PATCH', '', { manifest_toml: 'name = "x"' }],
      ['PUT', '/skills', { mode: 'none' }],
    ] as const) {
      const answer = await stage.host.json(method, `${at}${path}`, body)
      expect([path, answer.status, answer.body.error?.code]).toEqual([path, 409, 'conflict'])
    }
    expect((await stage.host.json('PATCH', at, { description: 'still' })).status).toBe(200)
    expect((await stage.host.json('GET', at)).body).toMatchObject({
      mode: 'Stable',
      description: 'still',
      model: { provider: 'openai', model: 'fake-1' },
      skills_mode: 'allowlist',
    })
    await stage.host.json('PUT', `${at}/mode`, { mode: 'Normal' })
    expect((await stage.host.json('GET', at)).body).toMatchObject({ mode: 'Normal', skills_mode: 'all' })
    expect((await stage.host.json('PUT', `${at}/model`, { model: 'other' })).status).toBe(200)
  })

  it('Stable uses the model that the manifest names for it', async () => {
    const id = await spawn('pinned_model = "openai/fake-7"')
    await stage.host.json('PUT', `/api/agents/${id}/mode`, { mode: 'Stable' })
    expect((await stage.host.json('GET', `/api/agents/${id}`)).body.model).toMatchObject({
      provider: 'openai',
      model: 'fake-7',
    })
  })

  it.each([
    ['observe', []],
    ['assist', 'read'],
    ['full', 'all'],
  ])('%s says which tools it may use', async (mode, expected) => {
    const id = await spawn()
    expect((await stage.host.json('PUT', `/api/agents/${id}/mode`, { mode })).body).toEqual({
      status: 'updated',
      mode,
      agent_id: id,
    })
    const { effective } = (await stage.host.json('GET', `/api/agents/${id}/tools`)).body
    if (expected === 'read') {
      expect(effective).toContain('kv_get')
      expect(effective).not.toContain('kv_set')
    } else expect(effective.length === 0).toBe(expected !== 'all')
    expect((await stage.host.json('GET', `/api/agents/${id}`)).body).toMatchObject({ mode: 'Normal', permission: mode })
  })

  it.each([[{}], [{ mode: 'stable' }], [{ mode: null }], [{ mode: 5 }], [{ mode: ['Stable'] }], [[]], ['Stable']])(
    '%j is 400',
    async (body) => {
      const id = await spawn()
      expect((await stage.host.json('PUT', `/api/agents/${id}/mode`, body)).status).toBe(400)
      expect((await stage.host.json('GET', `/api/agents/${id}`)).body.mode).toBe('Normal')
    },
  )

  it('of an unknown agent is 404, of no agent 400', async () => {
    expect((await stage.host.json('PUT', `/api/agents/${nobody}/mode`, { mode: 'Stable' })).status).toBe(404)
    expect((await stage.host.json('PUT', '/api/agents/x/mode', { mode: 'Stable' })).status).toBe(400)
  })
})
