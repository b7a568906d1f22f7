import { readdirSync, readFileSync } from 'node:fs'
import type { Result } from './figures.ts'
import { Home, median, startSvc } from './processes.ts'

const rounds = 12
const others = [
  'openai-compatible',
  'provider-anthropic',
  'provider-bedrock',
  'provider-gemini',
  'provider-cohere',
  'provider-replicate',
  'provider-codex',
  'command-line',
]

/** Processor time of all threads so far, in ms; the clock that `stat` counts with is too coarse for a start. */
function usedMs(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
    0,
  )
}

/** A second start with every provider against one with the embedded model alone, in turns. */
export async function providerCount(): Promise<readonly Result[]> {
  using all = new Home('')
  using few = new Home(`[plugins]\ndisabled = ${JSON.stringify(others)}\n`)
  const time = async (home: Home): Promise<{ ms: number; cpu: number }> => {
    await using svc = await startSvc(home)
    return { ms: svc.startedMs, cpu: usedMs(svc.pid) }
  }
  await time(all)
  await time(few)
  const measured = { all: [] as { ms: number; cpu: number }[], few: [] as { ms: number; cpu: number }[] }
  for (let round = 0; round < rounds; round++) {
    measured.all.push(await time(all))
    measured.few.push(await time(few))
  }
  const result = (label: string, of: 'ms' | 'cpu'): Result => {
    const [value, floor] = [median(measured.all.map((each) => each[of])), median(measured.few.map((each) => each[of]))]
    return {
      label,
      value: `${value.toFixed(1)} ms`,
      floor: `${floor.toFixed(1)} ms`,
      ratio: `${(value / floor).toFixed(3)} x`,
      goal: '<= 1.05 x',
      reached: value / floor <= 1.05,
    }
  }
  return [
    result('second start, every provider against none: until it answers', 'ms'),
    result('second start, every provider against none: processor time', 'cpu'),
  ]
}
