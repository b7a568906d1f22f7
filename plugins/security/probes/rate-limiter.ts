import { createLimiter } from 'svc/internal'
import type { Finding, ProbeCase } from '../contract.ts'
import type { ProbeTools } from '../probes.ts'

const TOKENS = 5
const WINDOW_MS = 60_000

/** A limiter as the daemon creates it, with a manual clock; then the installed one, which a real request must reach. */
export async function probe({ ownPort }: ProbeTools): Promise<Finding> {
  let now = 0
  const limiter = createLimiter({ tokens: TOKENS, windowMs: WINDOW_MS, maxKeys: 4, now: () => now })
  const first = Array.from({ length: TOKENS }, () => limiter.take('a', 1))
  const cases: ProbeCase[] = [
    { name: 'five of five tokens pass', passed: first.every(Boolean) },
    { name: 'the sixth is refused', passed: !limiter.take('a', 1) },
    { name: 'another key is not affected', passed: limiter.take('b', 1) },
    { name: 'a cost above the whole budget is refused', passed: !limiter.take('c', TOKENS + 1) },
  ]
  now += WINDOW_MS / TOKENS
  cases.push(
    { name: 'one passes after its time', passed: limiter.take('a', 1) },
    { name: 'and only one', passed: !limiter.take('a', 1) },
  )
  now += WINDOW_MS * 2
  cases.push({ name: 'keys that are full again are forgotten', passed: limiter.sweep() === 0 })
  for (let key = 0; key < 10; key++) limiter.take(`key-${key}`, 1)
  cases.push({ name: 'the number of keys is bounded', passed: limiter.size <= 4 })

  const host = ownPort.host()
  if (host === undefined)
    return { cases, evidence: 'no port is open: the installed limiter was not reached', skipped: true }
  // A path that does not exist is charged before anything else is checked.
  const ask = (): ReturnType<typeof ownPort.exchange> =>
    ownPort.exchange(`GET /no/such/path HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const address = (await ask())?.from ?? ''
  const before = ownPort.charged(address)
  const answer = await ask()
  const after = ownPort.charged(address)
  cases.push({
    name: 'a request to the open port is charged',
    passed: answer?.status === 429 || (before !== undefined && after !== undefined && after > before),
  })
  return { cases, evidence: 'the limiter of the open port charges requests of this machine too' }
}
