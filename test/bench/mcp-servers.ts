import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Result } from './figures.ts'
import { measureMemory } from './memory.ts'
import { Home, median, root, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const SERVERS = 20
const LIMIT_MB = 20
const CALLS = 200
const LIMIT_MS = 2
const MAX_WAIT_MS = 60_000
const POLL_MS = 100
const program = join(root, 'test/fixtures/mcp/server.mjs')

/** What idle MCP servers cost the daemon that runs them, without what their own processes use. */
export async function mcpIdle(): Promise<readonly Result[]> {
  const none = await measureMemory('', async () => {})
  const one = await measureMemory(toToml(1), (svc) => waitForServers(svc, 1))
  const many = await measureMemory(toToml(SERVERS), (svc) => waitForServers(svc, SERVERS))
  const mb = (bytes: number): number => bytes / 1024 / 1024
  const rss = mb(many.rss - none.rss)
  return [
    {
      label: `${SERVERS} idle MCP servers over stdio, RSS of the daemon`,
      value: `${rss.toFixed(1)} MB`,
      floor: `the first with all code: ${mb(one.rss - none.rss).toFixed(1)} MB`,
      ratio: '-',
      goal: `<= ${LIMIT_MB} MB`,
      reached: rss <= LIMIT_MB,
    },
  ]
}

/**
 * What the daemon adds to a call of a tool on an MCP server in a turn: the time the turn records for the call, without
 * that of the bare client of the SDK for the same call of the same program.
 */
export async function mcpTurn(): Promise<readonly Result[]> {
  using home = new Home(toToml(1))
  await using svc = await startSvc(home)
  await waitForServers(svc, 1)
  const recorded = await timeTurns(svc)
  const bare = await timeBareCalls()
  return [
    {
      label: `a tool call on an MCP server in a turn, p50 of ${CALLS}`,
      value: `${recorded.toFixed(2)} ms`,
      floor: `the server itself: ${bare.toFixed(2)} ms`,
      ratio: `+ ${(recorded - bare).toFixed(2)} ms`,
      goal: `<= + ${LIMIT_MS} ms`,
      reached: recorded - bare <= LIMIT_MS,
    },
  ]
}

async function timeTurns(svc: Server): Promise<number> {
  const manifest_toml =
    'name = "caller"\n[capabilities]\ntools = ["mcp_*"]\n[resources]\nmax_tool_calls_per_minute = 1000000\n'
  const { agent_id: agent } = await request<{ agent_id: string }>(svc, 'POST', '/api/agents', { manifest_toml })
  for (let call = 0; call < CALLS; call++)
    await request(svc, 'POST', `/api/agents/${agent}/message`, { message: `use mcp_bench0_echo {"text":"${call}"}` })
  const { traces } = await request<{ traces: { kind: string; name: string; failed: boolean; duration_ms: number }[] }>(
    svc,
    'GET',
    `/api/agents/${agent}/traces?limit=${CALLS}`,
  )
  const calls = traces.filter(({ kind }) => kind === 'tool')
  if (calls.length === 0 || calls.some(({ failed }) => failed)) throw new Error('calls of the server failed')
  return median(calls.map(({ duration_ms }) => duration_ms))
}

async function timeBareCalls(): Promise<number> {
  const { Client } = await import('@modelcontextprotocol/client')
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [program] }))
  const times: number[] = []
  for (let call = 0; call < CALLS; call++) {
    const started = performance.now()
    await client.callTool({ name: 'echo', arguments: { text: String(call) } })
    times.push(performance.now() - started)
  }
  await client.close()
  return median(times)
}

async function waitForServers(svc: Server, count: number): Promise<void> {
  let states: readonly string[] = []
  for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
    const { servers } = await request<{ servers: { state: string; error: string | null }[] }>(
      svc,
      'GET',
      '/api/mcp/servers',
    )
    if (servers.filter(({ state }) => state === 'connected').length === count) return
    states = servers.map(({ state, error }) => `${state} ${error ?? ''}`)
  }
  throw new Error(`not every MCP server is connected: ${[...new Set(states)].join(', ')}`)
}

async function request<T>({ port }: Server, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 200)}`)
  return JSON.parse(text) as T
}

function toToml(count: number): string {
  return Array.from({ length: count }, (_, index) =>
    [
      '[[mcp_servers]]',
      `name = "bench${index}"`,
      `command = ${JSON.stringify(process.execPath)}`,
      `args = [${JSON.stringify(program)}]`,
      'lazy = false',
      'tool_risk = { echo = "read" }',
      '',
    ].join('\n'),
  ).join('\n')
}
