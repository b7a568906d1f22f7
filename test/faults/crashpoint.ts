import { examine, prepareHome, Writer } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'
import { injecting, syncs } from './strace.ts'

/**
 * The daemon dies at the Nth call that puts bytes or a name on disk, for every N up to `rounds`, at boot and under
 * writes.
 */
export async function crashpoint({ rounds, built, seed }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  const problems: string[] = []
  const writer = new Writer(home.agent)
  let acknowledged = 0
  let atBoot = 0
  // Every point in the long form; a few spread over them in the short one.
  const points =
    rounds >= 50
      ? Array.from({ length: rounds }, (_, index) => index + 1)
      : Array.from({ length: rounds }, (_, index) => 1 + index * 7 + (seed % 5))
  for (const point of points) {
    try {
      await using dying = await home.start({ under: injecting(syncs, 'signal=KILL', String(point)) })
      for (let write = 0; write < 400; write++) {
        const answer = await writer.write(dying)
        if (answer === undefined) break
        if (answer.status === 200) acknowledged++
      }
    } catch (error) {
      if (!/ended before it listened/.test(String(error))) throw error
      atBoot++
    }
    await using survivor = await home.start()
    const wrong = [await writer.check(survivor), ...(await examine(survivor, home))].filter((one) => one !== undefined)
    problems.push(...wrong.map((one) => `killed at sync ${point}: ${one}`))
    await survivor.stop()
    if (problems.length > 0) break
  }
  return { points: points.length, killed_at_boot: atBoot, acknowledged, problems }
}
