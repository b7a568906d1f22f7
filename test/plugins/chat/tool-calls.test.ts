import { randomUUID } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { ONE_CALL } from '../../../plugins/chat/turn/record.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let free = ''
let bare = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../fixtures/guarded-calls/', import.meta.url),
    builtIns: [...turnPlugins, 'approvals', 'activity', 'system'],
    database: 'file',
  })
  free = await test.spawn('free')
  bare = await test.spawn('bare', '[capabilities]\ntools = ["reading"]\n')
})
afterAll(() => test[Symbol.asyncDispose]())

const call = async (tool: string, more: object = {}): Promise<Json> =>
  (await test.request<Json>('POST', '/test/calls', { id: randomUUID(), agent_id: free, tool, ...more })).body
const calls = async (tool: string): Promise<number> =>
  (await test.request<readonly string[]>('GET', '/test/calls')).body.filter((each) => each.startsWith(`${tool} `))
    .length
const pending = async (): Promise<Json[]> =>
  (await test.request<Json>('GET', '/api/approvals?status=pending')).body.approvals
const turn = async (id: string): Promise<Json> => (await test.request<Json>('GET', `/api/turns/${id}`)).body

describe('a call of a tool outside of turns', () => {
  it('is recorded as a turn: journal, trace, audit and metrics; the second one gets the result of the first', async () => {
    const id = randomUUID()
    const made = async () => [...(await test.metrics('svc_tool_calls_total')).values()].reduce((sum, n) => sum + n, 0)
    const before = await made()
    const ended = { outcome: 'ended', text: 'answer of noting', failed: false, labels: [] }
    expect(await call('noting', { id })).toEqual(ended)
    expect(await call('noting', { id })).toEqual(ended)
    expect(await calls('noting')).toBe(1)
    expect(await turn(id)).toMatchObject({ state: 'done', entry_point: 'workflow' })
    const { body } = await test.request<Json>('GET', `/api/agents/${free}/traces`)
    expect(JSON.stringify(body)).toContain(id)
    expect((await auditDetails(test, 'tool_invoked')).at(0)).toBe(`turn ${id}: noting done`)
    expect(await made()).toBe(before + 1)
  })

  it.each([
    ['without a grant', { agent: () => bare, tool: 'noting' }, 'The tool "noting" is not granted to this agent'],
    ['of no tool', { agent: () => free, tool: 'notin' }, 'There is no tool "notin"; did you mean "noting"?'],
  ])('%s is refused', async (_, { agent, tool }, text) => {
    expect(await call(tool, { agent_id: agent() })).toMatchObject({ failed: true, text: expect.stringContaining(text) })
  })

  it('of a paused or unknown agent is refused', async () => {
    const resting = await test.spawn('resting')
    await test.request('PUT', `/api/agents/${resting}/suspend`)
    expect((await call('noting', { agent_id: resting })).thrown).toMatch(/paused/i)
    expect((await call('noting', { agent_id: randomUUID() })).thrown).toContain('agent')
  })

  it('counts against the limit of calls per minute, once however often it is tried', async () => {
    const toml = '[capabilities]\ntools = ["*"]\n[resources]\nmax_tool_calls_per_minute = 1\n'
    const agent_id = await test.spawn('slow', toml)
    expect(await call('noting', { agent_id })).toMatchObject({ outcome: 'ended', failed: false })
    const waiting = await call('noting', { agent_id })
    expect(waiting).toMatchObject({ outcome: 'waiting', counted: false })
    expect(waiting.untilMs).toBeGreaterThan(Date.now())
    expect(await call('noting', { agent_id, counted: true })).toMatchObject({ outcome: 'ended', failed: false })
  })

  it('waits for a person without holding anything, and is made when that person approves it', async () => {
    const id = randomUUID()
    for (let n = 0; n < 2; n++)
      expect(await call('launching', { id, counted: n > 0 })).toEqual({ outcome: 'waiting', counted: true })
    const [approval, ...others] = await pending()
    expect([others, approval.tool_name ?? approval.tool]).toEqual([[], 'launching'])
    expect(await calls('launching')).toBe(0)
    await test.request('POST', `/api/approvals/${approval.id}/approve`, {})
    expect(await call('launching', { id, counted: true })).toMatchObject({ outcome: 'ended', failed: false })
    expect(await calls('launching')).toBe(1)

    const other = randomUUID()
    await call('launching', { id: other })
    await test.request('POST', `/api/approvals/${(await pending())[0].id}/reject`, {})
    for (let n = 0; n < 2; n++)
      expect(await call('launching', { id: other })).toMatchObject({
        failed: true,
        text: expect.stringContaining('a person rejected it'),
      })
    expect([await calls('launching'), await pending()]).toEqual([1, []])
  })

  it('whose arguments carry what the tool refuses needs the approval of exactly this call', async () => {
    const id = randomUUID()
    const labels = ['ExternalNetwork']
    expect(await call('wary', { id, labels })).toMatchObject({ outcome: 'waiting' })
    const [approval] = await pending()
    await test.request('POST', `/api/approvals/${approval.id}/approve`, {})
    expect(await call('wary', { id, labels })).toMatchObject({ failed: false, labels })
    expect((await auditDetails(test, 'capability_check')).join('\n')).toContain(
      `turn ${id}: ExternalNetwork declassified`,
    )
    expect(await call('wary')).toMatchObject({ outcome: 'ended', failed: false, labels: [] })
  })

  it('has its answer screened and labelled', async () => {
    const { text, labels } = await call('fetching')
    expect(labels).toEqual(['ExternalNetwork'])
    expect(text).toMatch(/^\[outside [0-9a-f]{16}: what follows came from the answer of fetching/)
    expect((await auditDetails(test, 'injection_suspected'))[0]).toContain('the answer of fetching looks like')
  })

  it('that was stopped midway is not made again, unless it only reads', async () => {
    const [noting, reading] = [randomUUID(), randomUUID()]
    expect(await call('noting_hanging', { id: noting, stop: true })).toEqual({ thrown: 'stopped' })
    expect(await call('noting_hanging', { id: noting })).toEqual({ outcome: 'unknown' })
    expect(await turn(noting)).toMatchObject({ state: 'interrupted' })
    expect(await calls('noting_hanging')).toBe(1)
    await test.reload()
    for (let n = 1; n <= 2; n++) {
      expect(await call('reading_hanging', { id: reading, stop: true })).toEqual({ thrown: 'stopped' })
      await test.reload()
    }
  })
})

it('a call that the process died in is ended by the next start, and nothing is said in a conversation', async () => {
  const id = randomUUID()
  await test.restart(() => {
    const db = new Sqlite(join(test.home, 'data', 'svc.db'))
    const at = '2026-01-01T00:00:00.000Z'
    db.prepare(
      `INSERT INTO journal_turn (id, agent_id, session_id, entry_point, state, on_crash, options, owner, created_at,
        updated_at) VALUES (?, ?, 'none', 'workflow', 'running', 'interrupt', ?, 'dead', ?, ?)`,
    ).run(id, free, ONE_CALL, at, at)
    db.prepare(
      `INSERT INTO journal_effect (key, turn_id, kind, name, state, input, created_at)
        VALUES (?, ?, 'tool', 'noting', 'intent', '{}', ?)`,
    ).run(`${id}:${id}`, id, at)
    db.close()
  })
  expect(await turn(id)).toMatchObject({ state: 'interrupted', text: '' })
  expect(await call('noting', { id })).toEqual({ outcome: 'unknown' })
  expect(await calls('noting')).toBe(0)
})
