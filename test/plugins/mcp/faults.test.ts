import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { server, smallFixture, startMcp, untilState, viewOf } from './servers.ts'

/** Each has a server of its own, and what it does costs only itself. */
const faults: readonly (readonly [name: string, fault: string, state: string, error: string])[] = [
  ['exits at once', 'exit', 'error', 'exit code 3'],
  ['writes much to stderr', 'stderr', 'connected', ''],
  ['prints a banner', 'banner', 'connected', ''],
]
const limits = {
  // So many programs that start at the same time take seconds on a slow machine.
  start_timeout_secs: 60,
  max_restarts: 2,
  restart_min_ms: 1,
  restart_max_ms: 600_000,
  max_message_bytes: 200_000,
  max_broken_messages: 10,
  max_messages_per_second: 500,
  log_bytes: 2048,
  max_tools: 12,
  max_description_chars: 64,
}
const one = { lazy: false, timeout_secs: 60 }

const hanging = server('hang', ['--fault=hang-initialize'], one)
/** A hundred starts of Node take ten seconds. */
const small = { name: 'small', command: 'sh', args: [smallFixture], lazy: false }

let test: PluginTest
beforeAll(async () => {
  test = await startMcp(
    [
      // The others do not wait for it.
      hanging,
      server('good', [], one),
      ...faults.map(([, fault]) => server(fault, [`--fault=${fault}`], one)),
      ...['flood', 'broken', 'unknown-ids', 'no-newline', 'die'].map((name) =>
        server(name, [`--names=${name},echo`], { ...one, lazy: true }),
      ),
      server('lots', ['--tools=100'], one),
      small,
    ],
    limits,
  )
  await untilState(test, 'good', 'connected')
})
afterAll(() => test[Symbol.asyncDispose]())

const callTool = (tool: string) => test.callTool(tool, {})
const isGoodAlive = async (): Promise<void> => {
  expect((await test.callTool('mcp_good_echo', { text: 'alive' })).text).toBe('alive')
}
const logOf = async (name: string): Promise<string> =>
  (await test.request<Json>('GET', `/api/mcp/servers/${name}/log`)).body.log

describe('a server that', () => {
  it('hangs at the handshake for start_timeout_secs', async () => {
    await using short = await startMcp([hanging], { ...limits, start_timeout_secs: 1 })
    expect((await untilState(short, 'hang', 'error')).error).toContain('timed out')
    expect(await untilState(test, 'small', 'connected')).toMatchObject({ error: null })
  })

  it.each(faults)('%s', async (_, name, state, error) => {
    const view = await untilState(test, name, state)
    expect(view.error ?? '').toContain(error)
    await isGoodAlive()
  })

  it.each([
    ['floods', 'flood', 'max_messages_per_second'],
    ['sends broken messages', 'broken', 'max_broken_messages'],
    ['answers what nobody asked', 'unknown-ids', 'an answer to a request that nobody sent'],
    ['writes a line without an end', 'no-newline', 'max_message_bytes'],
    ['ends in a call', 'die', 'exit code 1'],
  ])('%s fails the call with the reason, and starts anew with the next one', async (_, name, reason) => {
    await untilState(test, name, 'connected')
    const { pid } = await viewOf(test, name)
    const tool = `mcp_${name.replaceAll('-', '_')}_${name.replaceAll('-', '_')}`
    expect(await callTool(tool)).toMatchObject({ failed: true, text: expect.stringContaining(reason) })
    await isGoodAlive()
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'))
    const { text } = await eventually(async () => {
      const again = await callTool(`mcp_${name.replaceAll('-', '_')}_echo`)
      if (again.failed) throw new Error(again.text)
      return again
    })
    expect(text).toMatch(/^(?:called echo|undefined)$/)
  })

  it('fails again and again is given up after max_restarts, with an entry in the audit log', async () => {
    const view = await untilState(test, 'exit', 'error')
    await eventually(async () => expect((await viewOf(test, 'exit')).restarts).toBe(2))
    expect(view.state).toBe('error')
    const { body } = await test.request<Json>('GET', '/api/audit/recent?limit=50&event_type=mcp_server_changed')
    expect(body.entries.map(({ details }: Json) => details)).toContainEqual(expect.stringMatching(/^exit given up: /))
    const refused = await test.request<Json>('POST', '/api/mcp/servers/exit/restart')
    expect([refused.status, refused.body.error.code]).toEqual([502, 'mcp_server_failed'])
  })

  it('writes more than log_bytes keeps its newest lines; lists more than max_tools keeps the first', async () => {
    await untilState(test, 'stderr', 'connected')
    expect((await logOf('stderr')).length).toBeLessThanOrEqual(2048)
    expect((await viewOf(test, 'lots')).tools).toHaveLength(12)
  })
})

it('a hundred restarts leave no process and no handle', async () => {
  const handles = (): number => readdirSync('/proc/self/fd').length
  const restart = async (): Promise<number> => {
    const { status, body } = await test.request<Json>('POST', '/api/mcp/servers/small/restart')
    expect(status).toBe(200)
    return body.pid
  }
  await restart()
  const before = handles()
  const pids: number[] = []
  for (let round = 0; round < 100; round++) pids.push(await restart())
  expect(new Set(pids).size).toBe(100)
  for (const pid of pids.slice(0, -1)) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  expect(handles()).toBeLessThanOrEqual(before + 2)
})
