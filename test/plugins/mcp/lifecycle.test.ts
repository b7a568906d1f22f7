import { describe, expect, it } from 'vitest'
import { pauseAfter } from '../../../plugins/mcp/servers/backoff.ts'
import { Server } from '../../../plugins/mcp/servers/server.ts'
import type { ServerDeps } from '../../../plugins/mcp/servers/server.ts'
import type { ServerConfig } from '../../../plugins/mcp/servers/spec.ts'
import { noFeatures } from '../../../plugins/mcp/connection/features.ts'
import type { Session } from '../../../plugins/mcp/connection/session.ts'
import { StdioTransport } from '../../../plugins/mcp/connection/stdio.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { fixture, server, startMcp, untilState, viewOf } from './servers.ts'

const config: ServerConfig = {
  ...(server('one') as { name: string; command: string; args: string[] }),
  transport: 'stdio',
  protocol: 'initialize',
  url: undefined,
  headers: {},
  env: [],
  credentials: [],
  path: [],
  trust: 'operator',
  network: [],
  read: [],
  write: [],
  timeout_secs: 5,
  tool_timeout_secs: {},
  lazy: false,
  enabled: true,
  risk: undefined,
  tool_risk: {},
  trust_annotations: false,
  tools: [],
  origin: 'file',
  sampling: false,
  oauth: undefined,
}
const settings = {
  start_timeout_secs: 1,
  idle_secs: 10,
  restart_min_ms: 100,
  restart_max_ms: 1000,
  max_restarts: 3,
  restart_reset_secs: 60,
  relist_pause_ms: 1000,
  error_output_chars: 100,
  log_bytes: 1024,
} as ServerDeps['settings']

describe('restarts', () => {
  it('wait from restart_min_ms to restart_max_ms, twice as long each time, with jitter', () => {
    const pauses = (random: number) =>
      [1, 2, 3, 4, 5, 60].map((failures) => pauseAfter(failures, settings, () => random))
    expect(pauses(1)).toEqual([100, 200, 400, 800, 1000, 1000])
    expect(pauses(0)).toEqual([50, 100, 200, 400, 500, 500])
  })

  it('begin again after restart_reset_secs of work, and end when the server is stopped', async () => {
    const clock = new ManualClock()
    let ends: ((reason: string) => void)[] = []
    const open = async (): Promise<Session> => {
      const { promise, resolve } = Promise.withResolvers<string>()
      ends.push(resolve)
      return {
        closed: promise,
        capabilities: {},
        serverInfo: {},
        protocolVersion: '2025-11-25',
        readTools: async () => [],
        setTools: () => undefined,
        onChanged: () => () => undefined,
        end: async () => resolve('ended'),
      } as unknown as Session
    }
    const restarted: number[] = []
    const one = new Server(config, {
      settings,
      features: noFeatures,
      clock,
      random: () => 1,
      log: { info() {}, warn() {}, error() {}, debug() {} } as never,
      open,
      onChanged: () => undefined,
      onListed: async () => undefined,
      onRestart: () => restarted.push(clock.now()),
      onGivenUp: () => undefined,
    })
    await one.session()
    const fail = async (): Promise<void> => {
      ends.at(-1)?.('it ended')
      await eventually(() => expect(one.state).toBe('error'))
    }
    const start = clock.now()
    await fail()
    await expect(one.session()).rejects.toThrow('it ended')
    clock.advance(100)
    await eventually(() => expect(one.state).toBe('connected'))
    await fail()
    clock.advance(200)
    await eventually(() => expect(one.state).toBe('connected'))
    clock.advance(60_000)
    await fail()
    clock.advance(100)
    await eventually(() => expect(one.state).toBe('connected'))
    expect(restarted.map((at) => at - start)).toEqual([100, 300, 60_400])
    await one.stop('is stopped')
    expect(clock.waiting).toBe(0)
    ends = []
  })
})

it('a server that says all the time that its tools changed is asked once in relist_pause_ms', async () => {
  const clock = new ManualClock()
  let read = 0
  let change: (change: { readonly kind: 'tools' }) => void = () => undefined
  const session = {
    closed: new Promise(() => undefined),
    capabilities: {},
    serverInfo: {},
    protocolVersion: '2025-11-25',
    readTools: async () => {
      read++
      return []
    },
    setTools: () => undefined,
    onChanged: (listener: typeof change) => {
      change = listener
      return () => undefined
    },
    end: async () => undefined,
  } as unknown as Session
  const noisy = new Server(config, {
    settings,
    features: noFeatures,
    clock,
    random: () => 1,
    log: {} as never,
    open: async () => session,
    onChanged: () => undefined,
    onListed: async () => undefined,
    onRestart: () => undefined,
    onGivenUp: () => undefined,
  })
  await noisy.session()
  for (let times = 0; times < 100; times++) change({ kind: 'tools' })
  await eventually(() => expect([read, clock.waiting]).toEqual([2, 1]))
  clock.advance(1000)
  await eventually(() => expect(read).toBe(3))
  change({ kind: 'tools' })
  expect(clock.waiting).toBe(1)
  await noisy.stop('is stopped')
  expect([read, clock.waiting]).toEqual([3, 0])
})

it('a server that is removed while it is restarted starts no more, and restarts at once are one', async () => {
  const ends: string[] = []
  let open = 0
  const one = new Server(config, {
    settings,
    features: noFeatures,
    clock: new ManualClock(),
    random: () => 1,
    log: {} as never,
    open: async () => {
      open++
      return {
        closed: new Promise(() => undefined),
        capabilities: {},
        serverInfo: {},
        protocolVersion: '2025-11-25',
        readTools: async () => [],
        setTools: () => undefined,
        onChanged: () => () => undefined,
        end: async (reason: string) => {
          await Promise.resolve()
          open--
          ends.push(reason)
        },
      } as unknown as Session
    },
    onChanged: () => undefined,
    onListed: async () => undefined,
    onRestart: () => undefined,
    onGivenUp: () => undefined,
  })
  const restart = async (): Promise<unknown> => {
    await one.reset('is restarted')
    return await one.session()
  }
  await restart()
  await Promise.all([restart(), restart(), restart()])
  expect([open, ends]).toEqual([1, ['is restarted']])
  const restarts = [restart(), restart()]
  await one.stop('was removed')
  for (const each of restarts) await expect(each).rejects.toThrow('was removed or changed meanwhile')
  await expect(one.session()).rejects.toThrow('the MCP server "one"')
  expect(open).toBe(0)
})

describe('a lazy server', () => {
  it('runs while it is used: idle_secs without a call end it, and its tools stay', async () => {
    await using test = await startMcp([server('lazy')], { idle_secs: 1 })
    const { pid } = await untilState(test, 'lazy', 'connected')
    await eventually(async () => {
      await test.advance(5000)
      expect((await viewOf(test, 'lazy')).state).toBe('disconnected')
    })
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect((await test.callTool('mcp_lazy_echo', { text: 'again' })).text).toBe('again')
    expect((await viewOf(test, 'lazy')).pid).not.toBe(pid)
  })

  it('is not started at all by a daemon that knows its tools', async () => {
    await using test = await startMcp([server('lazy')], {}, {}, { database: 'file' })
    await untilState(test, 'lazy', 'connected')
    await test.restart()
    await eventually(() => expect(test.registered().tools).toContain('mcp_lazy_echo'))
    expect(await viewOf(test, 'lazy')).toMatchObject({ state: 'disconnected', pid: null })
  })
})

describe('limits', () => {
  it('max_calls, timeout_secs, max_pages, max_description_chars, max_schema_bytes and max_servers hold', async () => {
    await using test = await startMcp([server('one', ['--tools=300'], { tool_timeout_secs: { hang: 1 } })], {
      max_calls: 1,
      max_pages: 2,
      max_description_chars: 64,
      max_schema_bytes: 256,
      max_servers: 1,
    })
    const view = await untilState(test, 'one', 'connected')
    expect(view.tools.length).toBeLessThanOrEqual(200)
    expect(view.tools.map(({ tool }: Json) => tool)).not.toContain('long-schema')
    expect(view.tools.find(({ tool }: Json) => tool === 'long-description').description).toHaveLength(64)
    const hanging = test.callTool('mcp_one_hang', {})
    await eventually(async () => expect((await viewOf(test, 'one')).calls).toBeGreaterThan(0))
    expect(await test.callTool('mcp_one_echo', {})).toMatchObject({
      failed: true,
      text: expect.stringContaining('plugins.mcp.max_calls'),
    })
    expect(await hanging).toMatchObject({ failed: true, text: expect.stringContaining('within 1 s') })
    const { status, body } = await test.request<Json>('POST', '/api/mcp/servers', { name: 'two', command: 'x' })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('plugins.mcp.max_servers')])
  })

  it('max_waiting_bytes ends a server that does not read', async () => {
    const exit = Promise.withResolvers<never>()
    let killed = false
    const transport = new StdioTransport({
      start: async () =>
        ({
          pid: 1,
          running: true,
          ended: exit.promise,
          write: () => new Promise(() => undefined),
          kill: async () => {
            killed = true
          },
        }) as never,
      request: { command: fixture, cwd: '/' },
      limits: { maxMessageBytes: 1000, maxBrokenMessages: 1, maxMessagesPerSecond: 10, maxWaitingBytes: 100 },
      log: () => undefined,
    })
    await transport.start()
    await expect(
      transport.send({ jsonrpc: '2.0', method: 'notifications/x', params: { text: 'x'.repeat(200) } }),
    ).rejects.toThrow('does not read')
    expect([killed, transport.reason]).toEqual([true, expect.stringContaining('plugins.mcp.max_waiting_bytes')])
  })
})

describe('a reload', () => {
  it('of the plugin ends its programs, and calls with a clear answer', async () => {
    await using test = await startMcp([server('kept', [], { lazy: false }), server('other', [], { lazy: false })])
    const kept = await untilState(test, 'kept', 'connected')
    await untilState(test, 'other', 'connected')
    const running = test.callTool('mcp_kept_hang', {})
    await eventually(async () => expect((await test.callTool('mcp_kept_calls', {})).text).toContain('hang'))
    const reloaded = test.reload()
    expect(await running).toMatchObject({ failed: true })
    await reloaded
    const again = await untilState(test, 'kept', 'connected')
    expect(again.pid).not.toBe(kept.pid)
    expect(() => process.kill(kept.pid, 0)).toThrow('ESRCH')
    expect((await test.callTool('mcp_kept_calls', {})).text).not.toContain('hang')
  })
})
