import { screen } from '../screen.ts'

/** How a page of 1 MiB was judged, and what that took. */
export interface Benchmark {
  readonly level: string
  readonly cpuMs: number
}

const sentence = 'An ordinary page with ordinary words in it. '
const page = sentence.repeat(Math.ceil(1_048_576 / sentence.length)).slice(0, 1_048_576)
const before = process.cpuUsage()
const { level } = screen(page)
const { user, system } = process.cpuUsage(before)
process.send?.({ level, cpuMs: (user + system) / 1000 } satisfies Benchmark, () => process.disconnect())
