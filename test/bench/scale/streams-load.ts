/**
 * Reads many paced streams at once. Prints `{ tokens, lost, disordered, failures, p50Ms, p99Ms, maxMs }`: the lag is
 * from the moment
 * the provider wrote a token to the moment it was read here.
 */
import { Agent, request } from 'node:http'

interface Options {
  port: number
  paths: string[]
  tokens: number
  body: string
  openMs: number
}
const options = JSON.parse(process.argv[2] ?? '{}') as Options
const agent = new Agent({ keepAlive: false, maxSockets: Infinity })
const lags: number[] = []
const totals = { tokens: 0, lost: 0, disordered: 0, failures: 0 }
let firstFailure = ''

function read(path: string): Promise<void> {
  return new Promise((resolve) => {
    let expected = 0
    const fail = (why: string): void => {
      totals.failures++
      firstFailure ||= why
      resolve()
    }
    const onward = request(
      {
        host: '127.0.0.1',
        port: options.port,
        path,
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(options.body) },
      },
      (answer) => {
        let rest = ''
        answer.setEncoding('latin1')
        answer.on('data', (text: string) => {
          const now = Date.now()
          const piece = rest + text
          const cut = piece.lastIndexOf('\n\n')
          rest = piece.slice(cut + 2)
          if (cut === -1) return
          for (const event of piece.slice(0, cut).split('\n\n')) {
            // The end may repeat the whole text: only the deltas count.
            if (event.includes('"done":true') || event.includes('"response"')) continue
            for (const [, number, written] of event.matchAll(/(\d+):(\d{13}) /g)) {
              totals.tokens++
              lags.push(now - Number(written))
              if (Number(number) !== expected) totals.disordered++
              expected = Number(number) + 1
            }
          }
        })
        answer.on('end', () => {
          if (answer.statusCode !== 200) return fail(`HTTP ${answer.statusCode}: ${rest.slice(0, 300)}`)
          totals.lost += options.tokens - expected
          resolve()
        })
        answer.on('error', (error) => fail(error.message))
      },
    )
    onward.on('error', (error) => fail(error.message))
    onward.end(options.body)
  })
}

// They are opened over a moment, as clients come: a thousand connections in one instant measure the accept queue.
const gap = options.openMs / options.paths.length
const open: Promise<void>[] = []
const begun = performance.now()
for (const [index, path] of options.paths.entries()) {
  while (performance.now() - begun < index * gap)
    await new Promise((resolve) => {
      setTimeout(resolve, 1)
    })
  open.push(read(path))
}
await Promise.all(open)
lags.sort((a, b) => a - b)
const quantile = (share: number): number =>
  lags[Math.min(lags.length - 1, Math.floor(lags.length * share))] ?? Number.NaN
console.log(
  JSON.stringify({ ...totals, firstFailure, p50Ms: quantile(0.5), p99Ms: quantile(0.99), maxMs: quantile(1) }),
)
