import type { Finding, ProbeCase } from '../security/contract.ts'
import type { GuestResult, WasmRunner } from './contract.ts'

const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
/** `alloc: (i32) -> i32` and `execute: (i32, i32) -> i64`. */
const TYPES = [1, 12, 2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7e]
const FUNCTIONS = [3, 3, 2, 0, 1]
/** One page. */
const MEMORY = [5, 3, 1, 0, 1]
const EXPORTS = [
  [7, 28, 3],
  [6, ...Buffer.from('memory'), 2, 0],
  [5, ...Buffer.from('alloc'), 0, 0],
  [7, ...Buffer.from('execute'), 0, 1],
].flat()

/** A module whose `execute` has this body. */
function moduleWith(body: readonly number[]): Uint8Array {
  const code = [10, body.length + 10, 2, 5, 0, 0x41, 0x80, 8, 0x0b, body.length + 2, 0, ...body, 0x0b]
  return Uint8Array.from([...HEADER, ...TYPES, ...FUNCTIONS, ...MEMORY, ...EXPORTS, ...code])
}
/** Loops endlessly. */
const endless = moduleWith([0x03, 0x40, 0x0c, 0, 0x0b, 0x42, 0])
/** Writes two bytes: 2 + 3, and 1 if growing by 10,000 pages was refused. */
const adder = moduleWith([
  0x41, 0x80, 8, 0x41, 2, 0x41, 3, 0x6a, 0x3a, 0, 0, 0x41, 0x81, 8, 0x41, 0x90, 0xce, 0, 0x40, 0, 0x41, 0x7f, 0x46,
  0x3a, 0, 0, 0x42, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01,
])

const FUEL = 200_000n

/** Guests that finish, and guests that fuel, time or memory limits stop (security facts 1.3). */
export async function probe(runner: WasmRunner, signal: AbortSignal): Promise<Finding> {
  const run = (
    module: Uint8Array,
    limits: { readonly fuel?: bigint; readonly deadlineMs?: number } = {},
  ): Promise<GuestResult> =>
    runner.run({ module, input: Buffer.from('x'), fuel: FUEL, deadlineMs: 30_000, signal, ...limits })
  // Sequential: each guest is a thread with its own heap.
  const sum = await run(adder)
  const sumAgain = await run(adder)
  // The deadline of a guest that should run out of fuel first; longer on a slow machine.
  const deadlineMs = Math.min(10_000, Math.max(1500, 20 * Math.max(sum.durationMs, sumAgain.durationMs)))
  const outOfFuel = await run(endless, { deadlineMs })
  const outOfTime = await run(endless, { fuel: 2n ** 62n, deadlineMs: 150 })
  const cases: ProbeCase[] = [
    {
      name: `an endless loop ends with its fuel: ${outOfFuel.outcome}`,
      passed: outOfFuel.outcome === 'fuel_exhausted' && outOfFuel.fuelUsed === FUEL,
    },
    {
      name: `an endless loop with endless fuel ends with its time: ${outOfTime.outcome}`,
      passed: outOfTime.outcome === 'deadline' && outOfTime.durationMs < deadlineMs,
    },
    { name: `2 + 3 are 5: ${sum.outcome} ${sum.message}`, passed: sum.outcome === 'done' && sum.output[0] === 5 },
    { name: 'memory does not grow past its cap', passed: sum.output.length === 2 && sum.output[1] === 1 },
    { name: 'the same work costs the same', passed: (sum.fuelUsed ?? 0n) > 0n && sum.fuelUsed === sumAgain.fuelUsed },
  ]
  return { cases, evidence: `fuel for 2 + 3: ${sum.fuelUsed ?? 0n}` }
}
