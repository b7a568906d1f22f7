import { call, examine, prepareHome, Writer } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'
import { injecting } from './strace.ts'

/**
 * The Nth sync or write of the database fails once: that request is refused, the daemon lives, the next one works,
 * nothing acknowledged is missing.
 */
export async function ioerr({ rounds, built, seed }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  const problems: string[] = []
  let refused = 0
  let notStarted = 0
  for (let round = 0; round < rounds; round++) {
    const [calls, fault] =
      round % 2 === 0 ? (['fsync', 'EIO'] as const) : (['pwrite64', round % 4 === 1 ? 'ENOSPC' : 'EIO'] as const)
    const when = (round % 2 === 0 ? 8 : 40) + ((seed + round * 3) % 40)
    const writer = new Writer(home.agent, `io-${round}`)
    const say = (what: string): void => {
      problems.push(`${fault} at ${calls} ${when}: ${what}`)
    }
    try {
      await using daemon = await home.start({ under: injecting(calls, `error=${fault}`, String(when)) })
      for (let write = 0; write < 60; write++) {
        const answer = await writer.write(daemon)
        if (answer === undefined) {
          say(`no answer to write ${write}: ${daemon.output().split('\n').slice(-4).join(' | ')}`)
          break
        }
        if (answer.status >= 500) refused++
      }
      const health = await call(daemon, 'GET', '/api/health').catch(() => undefined)
      if (health?.status !== 200) say('the daemon did not live on')
      const again = await writer.write(daemon)
      if (again?.status !== 200) say(`writes did not work again: ${again?.status}`)
      const lost = await writer.check(daemon)
      if (lost !== undefined) say(lost)
      await daemon.stop()
    } catch (error) {
      // A fault at boot may refuse to start; it must not start half.
      if (!/ended before it listened/.test(String(error))) throw error
      notStarted++
    }
    await using after = await home.start()
    for (const wrong of [await writer.check(after), ...(await examine(after, home))])
      if (wrong !== undefined) say(`after a restart: ${wrong}`)
    await after.stop()
    if (problems.length > 0) break
  }
  return { faults: rounds, refused, not_started: notStarted, problems }
}
