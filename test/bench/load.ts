/**
 * HTTP load from raw sockets, so that the client is never what is measured. Prints `{ rate, p50Ms, p99Ms, failures,
 * failure, count, all, cpuMs }`: the last is the processor time of this client.
 */
import { connect } from 'node:net'

interface Options {
  port: number
  connections: number
  ms: number
  method: string
  path: string
  paths?: string[]
  /** Several servers: that of each connection, in turns, as with `paths`. */
  ports?: number[]
  /** Sleeps when there is nothing to do: where the servers need the core. */
  sleeps?: boolean
  body?: string
  warmMs?: number
  /** A text without which an answer is a failure, whatever its status. */
  ends?: string
}
const options = JSON.parse(process.argv[2] ?? '{}') as Options
const body = options.body ?? ''
const requestTo = (port: number, path: string): Buffer =>
  Buffer.from(
    `${options.method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: keep-alive\r\n${body ? `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` : ''}\r\n${body}`,
  )
const times: number[] = []
let failures = 0
/** The end of the first answer that was one. */
let failure: string | undefined
let answered = 0
let measuring = false
let running = true

/** Length of a complete answer at the start of the bytes, or 0. */
function complete(bytes: Buffer): number {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return 0
  const head = bytes.toString('latin1', 0, end).toLowerCase()
  const at = head.indexOf('content-length: ')
  if (at !== -1) {
    const total = end + 4 + Number.parseInt(head.slice(at + 16), 10)
    return bytes.length >= total ? total : 0
  }
  const last = bytes.indexOf('\r\n0\r\n\r\n', end)
  return last === -1 ? 0 : last + 7
}

function drive(_: unknown, index: number): Promise<void> {
  const port = options.ports?.[index % options.ports.length] ?? options.port
  const request = requestTo(port, options.paths?.[index % options.paths.length] ?? options.path)
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let begun = 0
    let held: Buffer = Buffer.alloc(0)
    const next = (): void => {
      begun = performance.now()
      socket.write(request)
    }
    socket.on('connect', next)
    socket.on('data', (bytes) => {
      held = held.length === 0 ? bytes : Buffer.concat([held, bytes])
      const length = complete(held)
      if (length === 0) return
      const status = held.toString('latin1', 9, 12)
      const good = status.startsWith('2') && (options.ends === undefined || held.includes(options.ends))
      if (!good) {
        failures++
        failure ??= held.toString('utf8').slice(-500)
      } else answered++
      if (measuring && good) times.push(performance.now() - begun)
      held = held.subarray(length)
      if (running) next()
      else socket.end()
    })
    socket.on('error', (error) => {
      failures++
      failure ??= error.message
    })
    socket.on('close', () => resolve())
  })
}

// A client that sleeps is woken by every answer, which costs the server more than the answer does: this one never
// sleeps, so
// that a fast server and a slow one are measured alike.
const spin = (): void => {
  if (running && options.sleeps !== true) setImmediate(spin)
}
spin()
const all = Array.from({ length: options.connections }, drive)
await new Promise((resolve) => {
  setTimeout(resolve, options.warmMs ?? 500)
})
measuring = true
const begun = performance.now()
await new Promise((resolve) => {
  setTimeout(resolve, options.ms)
})
measuring = false
const seconds = (performance.now() - begun) / 1000
running = false
await Promise.all(all)
const sorted = times.toSorted((a, b) => a - b)
const at = (share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
console.log(
  JSON.stringify({
    rate: times.length / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    failures,
    failure,
    count: times.length,
    all: answered,
    cpuMs: (process.cpuUsage().user + process.cpuUsage().system) / 1000,
  }),
)
