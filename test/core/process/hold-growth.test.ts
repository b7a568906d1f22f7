import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInThisContext } from 'node:vm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { holdGrowth } from '../../../core/process/hold-growth.ts'

/** Bits of V8's `%GetOptimizationStatus`: made by TurboFan, by Maglev. */
const OPTIMIZED = (1 << 4) | (1 << 5)
const ROUNDS = 10_000

interface Hot {
  run(): number
  isOptimized(): boolean
}
/** A function that is new to the engine. */
function makeHot(): Hot {
  const made: unknown = runInThisContext(`(() => {
    const add = (n) => { let sum = 0; for (let at = 0; at < 10; at++) sum += at * n; return sum }
    return { run: () => add(3), status: () => %GetOptimizationStatus(add) }
  })()`)
  const { run, status } = made as { run(): number; status(): number }
  return { run, isOptimized: () => (status() & OPTIMIZED) !== 0 }
}
/** Runs it until it is optimized, or often. */
async function heat(hot: Hot): Promise<boolean> {
  for (let round = 0; round < ROUNDS && !hot.isOptimized(); round++) {
    for (let call = 0; call < 100; call++) hot.run()
    if (round % 10 === 0) await setImmediate()
  }
  return hot.isOptimized()
}

beforeAll(() => setFlagsFromString('--allow-natives-syntax'))
afterAll(() => setFlagsFromString('--no-allow-natives-syntax'))

it('optimizes nothing while one holds it, and goes on after the last', async () => {
  const hot = makeHot()
  const [first, second] = [holdGrowth(), holdGrowth()]
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  expect(await heat(hot)).toBe(false)
  second[Symbol.dispose]()
  expect(await heat(hot)).toBe(true)
})
