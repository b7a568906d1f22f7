import type { Result } from './figures.ts'
import { Home, load, median, startFloor, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const ROUNDS = 5
const GOAL = 0.5
const CONCURRENCY = 16
const AGENT = 'caller'
interface Calls {
  readonly rate: number
  readonly all: number
}
interface Measured {
  readonly rates: number[]
  readonly costs: number[]
}

/** A tool that only reads, called through `/mcp` by the official client, against the SDK's own server with nothing kept. */
export async function mcpCall(): Promise<readonly Result[]> {
  using home = new Home(`[plugins.mcp-server]\nagent = "${AGENT}"\n`)
  await using floor = await startFloor('mcp-server.mjs')
  await using svc = await startSvc(home)
  await spawnCaller(svc)
  const bare: Measured = { rates: [], costs: [] }
  const own: Measured = { rates: [], costs: [] }
  for (let round = 0; round < ROUNDS; round++) {
    await measure(floor, bare)
    await measure(svc, own)
  }
  const [rate, limit] = [median(own.rates), median(bare.rates)]
  return [
    {
      label:
        `tool call through /mcp, ${CONCURRENCY} at a time ` +
        `(${median(own.costs).toFixed(0)} against ${median(bare.costs).toFixed(0)} us of processor)`,
      value: `${Math.round(rate)}/s`,
      floor: `${Math.round(limit)}/s`,
      ratio: (rate / limit).toFixed(2),
      goal: `>= ${GOAL}`,
      reached: rate / limit >= GOAL,
    },
  ]
}

/** An agent whose calls are not limited to those of a person. */
async function spawnCaller(svc: Server): Promise<void> {
  const manifest_toml =
    `name = "${AGENT}"\n[capabilities]\ntools = ["system_time"]\n` +
    '[resources]\nmax_tool_calls_per_minute = 1000000000\n'
  const answer = await fetch(`http://127.0.0.1:${svc.port}/api/agents`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ manifest_toml }),
  })
  if (!answer.ok) throw new Error(`the agent was not made: ${await answer.text()}`)
}

async function measure(server: Server, { rates, costs }: Measured): Promise<void> {
  const before = server.cpuMs()
  const options = { port: server.port, tool: 'system_time', concurrency: CONCURRENCY, ms: 1500 }
  const calls = await load<Calls>('mcp-load.ts', options)
  rates.push(calls.rate)
  costs.push(((server.cpuMs() - before) * 1000) / calls.all)
}
