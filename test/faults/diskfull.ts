import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { call, examine, prepareHome, Writer } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/** Whether a small file system can be made here. */
export const canMount = ((): boolean => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' })
    execFileSync('umount', [folder])
    return true
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})()

/**
 * The disk of the home fills up and is freed again: writes are refused with 503, reads and health go on, nothing
 * acknowledged is lost, and writes work again.
 */
export async function diskfull({ built, rounds }: FaultOptions): Promise<FaultReport> {
  const disk = mkdtempSync(join(tmpdir(), 'svc-fault-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', disk])
  const problems: string[] = []
  try {
    mkdirSync(join(disk, 'home'))
    using home = await prepareHome({ built }, {}, join(disk, 'home'))
    const writer = new Writer(home.agent)
    await using daemon = await home.start()
    let refused = 0
    let slowestRecoveryMs = 0
    for (let round = 0; round < rounds; round++) {
      if ((await writer.write(daemon))?.status !== 200) problems.push('a write before the disk was full did not work')
      const ballast = join(disk, 'ballast')
      fill(ballast)
      const before = messages(daemon.output()).length
      const since = performance.now()
      // A few more may fit into what is allocated already.
      for (let write = 0; write < 4_000; write++) {
        const answer = await writer.write(daemon)
        if (answer === undefined) {
          problems.push(`no answer: ${daemon.output().split('\n').slice(-3).join(' | ')}`)
          break
        }
        if (answer.status < 500) continue
        refused++
        if (answer.status !== 503 || answer.body.error.code !== 'service_unavailable')
          problems.push(`a write on a full disk answered ${answer.status} ${JSON.stringify(answer.body)}`)
        if (refused % 5 === 0) break
      }
      if (!(await turns(daemon, 'degraded'))) problems.push('health is ok on a full disk')
      for (const path of [
        '/api/health',
        `/api/agents/${home.agent}`,
        '/api/agents',
        `/api/memory/agents/${home.agent}/kv`,
      ]) {
        const { status } = await call(daemon, 'GET', path)
        if (status !== 200) problems.push(`${path} answered ${status} on a full disk`)
      }
      const lines = messages(daemon.output()).slice(before)
      const secs = (performance.now() - since) / 1000
      if (lines.length > 5 + secs * 2)
        problems.push(`${lines.length} messages were logged in ${secs.toFixed(1)} s: ${lines.slice(-3).join(' | ')}`)
      rmSync(ballast)
      const freed = performance.now()
      for (;;) {
        if ((await writer.write(daemon))?.status === 200) break
        if (performance.now() - freed > 5_000) {
          problems.push('writes did not work within 5 s of the disk being free again')
          break
        }
        await delay(50)
      }
      slowestRecoveryMs = Math.max(slowestRecoveryMs, performance.now() - freed)
      if (!(await turns(daemon, 'ok'))) problems.push('health stays degraded when there is room again')
      const wrong = await writer.check(daemon)
      if (wrong !== undefined) problems.push(wrong)
      if (problems.length > 0) break
    }
    if (refused === 0) problems.push('the disk never was too full for a write')
    problems.push(...(await examine(daemon, home)))
    if ((await daemon.stop()) !== 0) problems.push('the daemon did not end cleanly')
    return { rounds, refused, slowest_recovery_ms: Math.round(slowestRecoveryMs), problems }
  } finally {
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true, force: true })
  }
}

/** Whether the health becomes this in the five seconds that an answer of it may be old. */
async function turns(daemon: Parameters<typeof call>[0], status: string): Promise<boolean> {
  for (const until = performance.now() + 5_000; performance.now() < until; await delay(100))
    if ((await call(daemon, 'GET', '/api/health')).body.status === status) return true
  return false
}

/** Lines that begin a message; a stack below one is part of it. */
const messages = (output: string): string[] => output.split('\n').filter((line) => /^\d\d:\d\d:\d\d/.test(line))

export function fill(file: string): void {
  for (const size of [1_048_576, 4_096]) {
    const block = Buffer.alloc(size)
    // As much as goes; the error is what is wanted.
    try {
      for (let part = 0; part < 100; part++) writeFileSync(file, block, { flag: 'a' })
    } catch {
      continue
    }
  }
}
