/**
 * Tool calls by the official client of MCP, one session and as many calls at the same time as asked for. Prints `{ rate,
 * p50Ms, count, all }`.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

interface Options {
  readonly port: number
  readonly tool: string
  readonly concurrency: number
  readonly ms: number
}
const { port, tool, concurrency, ms } = JSON.parse(process.argv[2] ?? '{}') as Options
const client = new Client({ name: 'bench', version: '1' })
await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)))

const times: number[] = []
let all = 0
let isMeasuring = false
const stop = new AbortController()
async function calls(): Promise<void> {
  while (!stop.signal.aborted) {
    const begun = performance.now()
    const { isError } = await client.callTool({ name: tool, arguments: {} })
    if (isError) throw new Error(`${tool} failed`)
    all++
    if (isMeasuring) times.push(performance.now() - begun)
  }
}
const running = Array.from({ length: concurrency }, calls)
const after = (span: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, span)
  })
await after(500)
isMeasuring = true
const begun = performance.now()
await after(ms)
isMeasuring = false
const seconds = (performance.now() - begun) / 1000
stop.abort()
await Promise.all(running)
await client.close()
const p50Ms = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN
console.log(JSON.stringify({ rate: times.length / seconds, p50Ms, failures: 0, count: times.length, all }))
