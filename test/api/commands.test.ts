import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat()
  stage.fake.always(() => ({ text: 'heard' }))
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = () => stage.spawn(`commanded-${serial++}`)
const run = async (agent: string, command: string, more: object = {}) =>
  (await stage.host.json('POST', `/api/agents/${agent}/commands`, { command, ...more })).body
const say = (agent: string, message: string) => stage.host.json('POST', `/api/agents/${agent}/message`, { message })
const active = async (agent: string): Promise<string> => (await stage.session(agent)).session_id

describe('slash commands over REST', () => {
  it('are listed, each with its name, and read by it', async () => {
    const { commands } = (await stage.host.json('GET', '/api/commands')).body
    expect(commands).toContainEqual({
      cmd: '/new',
      desc: 'a new, empty session',
      name: 'new',
      aliases: ['reset'],
      description: 'a new, empty session',
      category: 'conversation',
      requires_agent: true,
    })
    for (const name of ['sessions', '%2Fsessions', 'SESSIONS'])
      expect((await stage.host.json('GET', `/api/commands/${name}`)).body.name).toBe('sessions')
    expect((await stage.host.json('GET', '/api/commands/reset')).body.name).toBe('new')
    expect((await stage.host.json('GET', '/api/commands/dance')).status).toBe(404)
  })

  it.each(['web', 'cli', 'channel', 'all'])('are listed for %s', async (surface) => {
    const { body } = await stage.host.json('GET', `/api/commands?surface=${surface}`)
    expect(body.surface).toBe(surface)
    const names = body.commands.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(['new', 'status', 'agents', 'sessions']))
    // Chosen in a chat; everywhere else the client knows whom it talks to.
    expect(names.includes('agent')).toBe(surface === 'channel' || surface === 'all')
  })
  it('are refused for a surface that does not exist', async () => {
    const { status, body } = await stage.host.json('GET', '/api/commands?surface=fax')
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('surface')
  })
  it('say who answers and who else there is, and know no command of another surface', async () => {
    const agent = await spawn()
    expect((await run(agent, '/status')).content).toMatch(/^Agent: commanded-\d+ \(Running\)\nSession: /)
    expect((await run(agent, '/agents')).content).toMatch(/^\* commanded-\d+ \(Running\)$/m)
    expect((await run(agent, '/agent other')).content).toContain('Unknown command /agent')
    expect((await run(agent, '/help')).content).not.toContain('/agent ')
  })

  it('answer like those of a socket', async () => {
    const agent = await spawn()
    expect(await run(agent, '/usage')).toEqual({
      content: expect.stringMatching(/^This session: 0 calls/) as string,
      session_id: await active(agent),
      thinking: null,
    })
    expect((await run(agent, 'help')).content).toContain('/sessions [number]: ')
    expect((await run(agent, '/dance')).content).toContain('Unknown command')
  })

  it('carry what the conversation has switched on in and out', async () => {
    const agent = await spawn()
    expect(await run(agent, '/think')).toMatchObject({ thinking: true })
    expect(await run(agent, '/usage', { thinking: true })).toMatchObject({ thinking: true })
    expect(await run(agent, '/think', { thinking: true })).toMatchObject({ thinking: false })
  })

  it.each(['', '/', '/etc/passwd', `/${'x'.repeat(2001)}`, 7, undefined])('%j is refused', async (command) => {
    expect((await stage.post(`/api/agents/${stage.agent}/commands`, { command })).status).toBe(400)
  })
})

describe('/sessions', () => {
  it('lists the sessions newest first, and goes back to one by number, label or id', async () => {
    const agent = await spawn()
    const first = await active(agent)
    await say(agent, 'the first one')
    await stage.host.json('PUT', `/api/sessions/${first}/label`, { label: 'Taxes' })
    const { session_id: second } = await run(agent, '/new')
    expect(second).not.toBe(first)
    await say(agent, 'another')
    expect((await run(agent, '/sessions')).content).toMatch(
      /^\* 1\. .*\(2 messages, \d{4}-.*\)\n {2}2\. Taxes \(2 messages, .* UTC\)\n\n\/sessions <number> goes back to one\.$/,
    )
    for (const wanted of ['2', 'Taxes', first, first.slice(0, 8)]) {
      await run(agent, '/sessions 1')
      expect(await run(agent, `/sessions ${wanted}`)).toMatchObject({
        content: `Back in session ${first}: Taxes, 2 messages.`,
        session_id: first,
      })
      expect(await active(agent)).toBe(first)
    }
  })

  it('knows no session of another agent, nor what is not there', async () => {
    const [agent, other] = [await spawn(), await spawn()]
    await say(other, 'mine')
    for (const wanted of ['99', '0', 'nothing', 'ffff', await active(other)])
      expect(
        (await stage.host.json('POST', `/api/agents/${agent}/commands`, { command: `/sessions ${wanted}` })).status,
      ).toBe(404)
    expect(
      (await stage.post(`/api/agents/${agent}/commands`, { command: '/usage', session_id: await active(other) }))
        .status,
    ).toBe(404)
  })

  it('a conversation in a session that is not the active one has commands of its own', async () => {
    const agent = await spawn()
    const first = await active(agent)
    await say(agent, 'one')
    const { session_id: second } = await run(agent, '/new')
    expect((await run(agent, '/usage', { session_id: first })).content).toMatch(/^This session: 1 calls/)
    expect(await run(agent, '/usage')).toMatchObject({
      content: expect.stringMatching(/^This session: 0 calls/) as string,
      session_id: second,
    })
    expect(await run(agent, '/new', { session_id: first })).toMatchObject({ session_id: await active(agent) })
  })
})
