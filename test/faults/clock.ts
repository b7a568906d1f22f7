import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { examine, prepareHome, Writer } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'
import type { Json } from '../support/json.ts'

const hour = 3_600_000
const shifts: readonly (readonly [string, number])[] = [
  ['+1 h', hour],
  ['-1 h', -hour],
  ['+1 day', 24 * hour],
  ['-1 day', -24 * hour],
  ['+40 days', 40 * 24 * hour],
  ['back', 0],
]

/** The wall clock jumps and the process is paused: limits, uptime, tickets and the trail do not care. */
export async function clock({ built, rounds }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  const file = join(home.path, 'shift')
  writeFileSync(file, '0')
  const problems: string[] = []
  await using daemon = await home.start({
    env: {
      SHIFT_FILE: file,
      NODE_OPTIONS: `--require=${fileURLToPath(new URL('shifted-date.cjs', import.meta.url))}`,
      SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '1500',
      SVC_API_KEY: 'clock-key',
    },
  })
  const auth = { authorization: 'Bearer clock-key', 'content-type': 'application/json' }
  const ask = async (method: string, path: string, body?: unknown): Promise<{ status: number; body: Json }> => {
    const response = await fetch(daemon.url + path, {
      method,
      headers: auth,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    })
    return { status: response.status, body: await response.json() }
  }
  const uptime = async (): Promise<number> => (await ask('GET', '/api/health')).body.uptime_seconds
  const ticketWorks = (protocol: string): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = new WebSocket(`${daemon.url.replace('http', 'ws')}/api/agents/${home.agent}/ws`, ['svc', protocol])
      socket.addEventListener(
        'message',
        () => {
          socket.close()
          resolve(true)
        },
        { once: true },
      )
      socket.addEventListener('error', () => resolve(false), { once: true })
    })
  const ticket = async (): Promise<string> => (await ask('POST', '/api/auth/ws-ticket')).body.protocol
  let last = await uptime()
  const used = await ticket()
  if (!(await ticketWorks(used))) problems.push('a fresh ticket does not work')
  for (let round = 0; round < rounds; round++) {
    for (const [name, shift] of shifts) {
      const early = await ticket()
      writeFileSync(file, String(shift))
      await delay(60)
      const seen = new Date(
        (await ask('PUT', `/api/memory/agents/${home.agent}/kv/clock`, { value: name })).body.updated_at ??
          Date.now() + shift,
      ).getTime()
      if (Math.abs(seen - Date.now() - shift) > 60_000) problems.push(`${name}: the shift did not reach the daemon`)
      const up = await uptime()
      if (up < last || up > last + 60) problems.push(`${name}: uptime went from ${last} to ${up}`)
      last = up
      if (await ticketWorks(used)) problems.push(`${name}: a used ticket works again`)
      if (!(await ticketWorks(early))) problems.push(`${name}: a ticket of before no longer works`)
      const turn = await ask('POST', `/api/agents/${home.agent}/message`, { message: `it is ${name}` })
      if (turn.status !== 200) problems.push(`${name}: a message answered ${turn.status}`)
      const { body } = await ask('GET', '/api/audit/verify')
      if (body.valid !== true) problems.push(`${name}: the trail is ${JSON.stringify(body)}`)
    }
  }
  // The limiter is neither opened nor closed by a jump: what is used up stays used up.
  let refused = false
  for (let batch = 0; batch < 40 && !refused; batch++)
    refused = (
      await Promise.all(Array.from({ length: 100 }, async () => (await fetch(`${daemon.url}/api/health`)).status))
    ).includes(429)
  if (!refused) problems.push('the limiter never refused')
  writeFileSync(file, String(24 * hour))
  await delay(60)
  // A whole new budget would be 1,500 requests; what trickles in meanwhile are a few.
  const after = await Promise.all(
    Array.from({ length: 600 }, async () => (await fetch(`${daemon.url}/api/health`)).status),
  )
  if (!after.includes(429)) problems.push('a jump of the clock opened the limiter')
  // Paused as a laptop is that was closed.
  process.kill(daemon.pid, 'SIGSTOP')
  await delay(Math.min(120_000, rounds * 12_000 - 10_000))
  process.kill(daemon.pid, 'SIGCONT')
  const health = await fetch(`${daemon.url}/api/health`, { signal: AbortSignal.timeout(10_000) })
  if (![200, 429].includes(health.status)) problems.push(`after the pause health answered ${health.status}`)
  writeFileSync(file, '0')
  await daemon.stop()
  await using again = await home.start()
  problems.push(...(await examine(again, home)))
  const writer = new Writer(home.agent)
  if ((await writer.write(again))?.status !== 200) problems.push('writes do not work after all that')
  await again.stop()
  return { jumps: rounds * shifts.length, problems: problems.slice(0, 5) }
}
