import { createParser } from 'eventsource-parser'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import type { Json } from '../support/json.ts'

let host: TestHost
beforeAll(async () => {
  host = await startHost({ config: { plugins: { chat: { session_followers: 4 } } } })
})
afterAll(() => host[Symbol.asyncDispose]())

interface Event {
  readonly event: string
  readonly data: Json
}
/** A follower of a session: `until` waits for an event and gives all up to it. */
async function follow(sessionId: string) {
  const leave = new AbortController()
  const response = await fetch(`${host.url}/api/sessions/${sessionId}/stream`, { signal: leave.signal })
  const events: Event[] = []
  const parser = createParser({
    onEvent: ({ event = '', data }) => {
      events.push({ event, data: JSON.parse(data) })
    },
  })
  const reader = (response.body ?? expect.fail('no body')).pipeThrough(new TextDecoderStream()).getReader()
  return {
    response,
    events,
    async until(wanted: (event: Event) => boolean): Promise<Event> {
      for (let at = 0; ;) {
        for (; at < events.length; at++) {
          const event = events[at]
          if (event && wanted(event)) {
            events.splice(0, at + 1)
            return event
          }
        }
        const { done, value } = await reader.read()
        if (done) throw new Error(`the stream ended after ${JSON.stringify(events)}`)
        parser.feed(value)
      }
    },
    [Symbol.asyncDispose]: async () => {
      leave.abort()
      await reader.cancel().catch(() => undefined)
    },
  }
}
const spawn = async (name: string, more = ''): Promise<{ id: string; session: string }> => {
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml: `name = "${name}"\n[capabilities]\ntools = ["*"]\n${more}`,
  })
  const { session_id: session } = (await host.json('GET', `/api/agents/${body.agent_id}/session`)).body
  return { id: body.agent_id, session }
}
const isDone = ({ event }: Event): boolean => event === 'done'

test('a follower hears of messages of every entry point, and of the answers', async () => {
  const agent = await spawn('followed')
  await using feed = await follow(agent.session)
  expect((await feed.until(({ event }) => event === 'snapshot')).data).toMatchObject({
    session_id: agent.session,
    agent_id: agent.id,
    active_session_id: agent.session,
    turns: [],
    events: [],
  })
  await host.json('POST', `/api/agents/${agent.id}/message`, { message: 'use system_time {}' })
  const message = await feed.until(({ event }) => event === 'message')
  expect(message.data).toMatchObject({ entry_point: 'rest', content: 'use system_time {}' })
  const turn = message.data.turn_id
  expect((await feed.until(({ event }) => event === 'tool_use')).data).toMatchObject({
    tool: 'system_time',
    turn_id: turn,
  })
  expect((await feed.until(({ event }) => event === 'tool_result')).data.turn_id).toBe(turn)
  expect((await feed.until(({ event }) => event === 'chunk')).data.turn_id).toBe(turn)
  expect((await feed.until(isDone)).data).toMatchObject({ turn_id: turn, session_id: agent.session })
  await (
    await fetch(`${host.url}/api/agents/${agent.id}/message/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'hello' }),
    })
  ).text()
  expect((await feed.until(({ event }) => event === 'message')).data).toMatchObject({
    entry_point: 'sse',
    content: 'hello',
  })
  await feed.until(isDone)
})

test('who joins while an answer waits for a person sees the message, and then the rest', async () => {
  const agent = await spawn('joined', '[metadata]\napproval = "always"\n')
  const answer = host.json('POST', `/api/agents/${agent.id}/message`, {
    message: 'use system_time {}',
  })
  let request: { id: string } | undefined
  await expect
    .poll(async () => (request = (await host.json('GET', `/api/approvals?agent_id=${agent.id}`)).body.approvals[0]))
    .toBeTruthy()
  const queued = host.json('POST', `/api/agents/${agent.id}/message`, { message: 'and then hello' })
  await expect.poll(async () => (await host.json('GET', `/api/agents/${agent.id}/turns`)).body.turns.length).toBe(2)
  await using feed = await follow(agent.session)
  const snapshot = (await feed.until(({ event }) => event === 'snapshot')).data
  expect(snapshot.turns).toMatchObject([
    { content: 'use system_time {}', entry_point: 'rest' },
    { content: 'and then hello' },
  ])
  expect(snapshot.events.map(({ event }: Event) => event)).toContain('tool_use')
  await host.json('POST', `/api/approvals/${request?.id}/reject`)
  expect((await feed.until(isDone)).data.turn_id).toBe(snapshot.turns[0].turn_id)
  expect((await feed.until(isDone)).data.turn_id).toBe(snapshot.turns[1].turn_id)
  expect(feed.events.filter(({ event }) => event === 'message')).toEqual([])
  await Promise.all([answer, queued])
})

test('a follower is told that another session is active and that its own was cleared', async () => {
  const agent = await spawn('moved')
  await using feed = await follow(agent.session)
  await feed.until(({ event }) => event === 'snapshot')
  await host.json('DELETE', `/api/agents/${agent.id}/history`)
  await feed.until(({ event }) => event === 'cleared')
  const { body } = await host.json('POST', `/api/agents/${agent.id}/session/reset`)
  expect((await feed.until(({ event }) => event === 'active')).data.session_id).toBe(body.new_session_id)
})

test('only so many follow, and a session that is not there has no stream', async () => {
  const agent = await spawn('popular')
  await using _a = await follow(agent.session)
  await using _b = await follow(agent.session)
  await using _c = await follow(agent.session)
  await using _d = await follow(agent.session)
  const refused = await host.json('GET', `/api/sessions/${agent.session}/stream`)
  expect(refused).toMatchObject({
    status: 429,
    body: { error: expect.stringContaining('session_followers') },
  })
  expect((await host.json('GET', '/api/sessions/0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d/stream')).status).toBe(404)
  expect((await host.json('GET', '/api/sessions/x/stream')).status).toBe(400)
})

test('the active session can be read by its id before anything was written to it', async () => {
  const agent = await spawn('unwritten')
  const { session_id: session } = (await host.json('POST', `/api/agents/${agent.id}/session/reset`)).body
  for (const id of [agent.session, session ?? agent.session])
    expect(await host.json('GET', `/api/sessions/${id}`)).toMatchObject({ status: 200, body: { messages: [] } })
})

test('titles: the label, otherwise how the first message begins', async () => {
  const agent = await spawn('titled')
  const title = async (): Promise<string> =>
    (await host.json('GET', `/api/agents/${agent.id}/sessions`)).body.sessions[0].title
  expect(await title()).toBe('')
  const said = `  "Quoted" \\ and\n${'long '.repeat(40)}`
  await host.json('POST', `/api/agents/${agent.id}/message`, { message: said })
  await host.json('POST', `/api/agents/${agent.id}/message`, { message: 'second' })
  expect(await title()).toMatch(/^"Quoted" \\ and long long .*…$/)
  expect((await title()).length).toBeLessThanOrEqual(80)
  await host.json('PUT', `/api/sessions/${agent.session}/label`, { label: 'Named' })
  expect(await title()).toBe('Named')
  const all = (await host.json('GET', '/api/sessions')).body.sessions
  expect(all.find(({ id }: { id: string }) => id === agent.session).title).toBe('Named')
  expect((await host.json('GET', `/api/sessions/${agent.session}`)).body.title).toBe('Named')
})
