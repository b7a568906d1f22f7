import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { call, examine, prepareHome, Writer } from './home.ts'
import { beyond, percentile } from './report.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * Another process holds the write lock for `rounds` seconds: health stays quick, reads are served, writes are refused
 * in time, and work again at once.
 */
export async function locked({ built, rounds }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  const problems: string[] = []
  const writer = new Writer(home.agent)
  await using daemon = await home.start()
  if ((await writer.write(daemon))?.status !== 200) problems.push('a write before the lock did not work')
  const holder = new DatabaseSync(join(home.path, 'data', 'svc.db'))
  holder.exec('BEGIN IMMEDIATE')
  const until = performance.now() + rounds * 1000
  const health: number[] = []
  let refused = 0
  let slowestRefusalMs = 0
  const watching = (async () => {
    while (performance.now() < until) {
      const since = performance.now()
      const { status } = await call(daemon, 'GET', '/api/health')
      health.push(performance.now() - since)
      if (status !== 200) problems.push(`health answered ${status}`)
      const read = await call(daemon, 'GET', `/api/memory/agents/${home.agent}/kv`)
      if (read.status !== 200) problems.push(`a read answered ${read.status}`)
    }
  })()
  while (performance.now() < until) {
    const since = performance.now()
    const answer = await writer.write(daemon, rounds * 1000 + 10_000)
    const took = performance.now() - since
    // One that waits until the lock is gone is as good.
    if (answer === undefined) problems.push('a write had no answer')
    else if (answer.status === 503) {
      refused++
      slowestRefusalMs = Math.max(slowestRefusalMs, took)
      if (answer.headers.get('retry-after') === null) problems.push('a refusal had no Retry-After')
    } else if (performance.now() < until) problems.push(`a write answered ${answer.status} while another held the lock`)
  }
  await watching
  holder.exec('ROLLBACK')
  holder.close()
  const freed = performance.now()
  while ((await writer.write(daemon))?.status !== 200 && performance.now() - freed < 10_000);
  const recoveryMs = performance.now() - freed
  const wrong = await writer.check(daemon)
  if (wrong !== undefined) problems.push(wrong)
  problems.push(...(await examine(daemon, home)))
  problems.push(
    ...beyond(built, 'ms of health, p99', percentile(health, 0.99), 50),
    ...beyond(built, 'ms until a write was refused', slowestRefusalMs, 5_000),
    ...beyond(built, 'ms until writes worked again', recoveryMs, 1_000),
  )
  await daemon.stop()
  return {
    secs: rounds,
    refused,
    slowest_refusal_ms: Math.round(slowestRefusalMs),
    recovery_ms: Math.round(recoveryMs),
    health_p99_ms: Number(percentile(health, 0.99).toFixed(1)),
    health_requests: health.length,
    problems: [...new Set(problems)].slice(0, 5),
  }
}
