import type { Finding, ProbeCase } from '../security/contract.ts'
import type { GuestResult, WasmRunner } from './contract.ts'

/**
 * Header, types of `alloc` and `execute`, two functions, a page of memory, the three exports; what `execute` does is
 * put in.
 */
const around = (body: readonly number[]): Uint8Array =>
  Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    1,
    12,
    2,
    0x60,
    1,
    0x7f,
    1,
    0x7f,
    0x60,
    2,
    0x7f,
    0x7f,
    1,
    0x7e,
    3,
    3,
    2,
    0,
    1,
    5,
    3,
    1,
    0,
    1,
    7,
    28,
    3,
    6,
    ...Buffer.from('memory'),
    2,
    0,
    5,
    ...Buffer.from('alloc'),
    0,
    0,
    7,
    ...Buffer.from('execute'),
    0,
    1,
    10,
    body.length + 10,
    2,
    5,
    0,
    0x41,
    0x80,
    8,
    0x0b,
    body.length + 2,
    0,
    ...body,
    0x0b,
  ])
/** Goes round for ever. */
const endless = around([0x03, 0x40, 0x0c, 0, 0x0b, 0x42, 0])
/**
 * Puts 2 + 3 where its answer is, behind it whether 10,000 more pages were refused (1), and says that it has two bytes.
 */
const adder = around([
  0x41, 0x80, 8, 0x41, 2, 0x41, 3, 0x6a, 0x3a, 0, 0, 0x41, 0x81, 8, 0x41, 0x90, 0xce, 0, 0x40, 0, 0x41, 0x7f, 0x46,
  0x3a, 0, 0, 0x42, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01,
])

const FUEL = 200_000n

/** Guests that end well, and guests that fuel, clock and memory have to end (security facts 1.3). */
export async function probe(runner: WasmRunner, signal: AbortSignal): Promise<Finding> {
  const run = (
    module: Uint8Array,
    more: { readonly fuel?: bigint; readonly deadlineMs?: number } = {},
  ): Promise<GuestResult> =>
    runner.run({ module, input: Buffer.from('x'), fuel: FUEL, deadlineMs: 30_000, signal, ...more })
  // One after the other: each is a thread with a heap of its own.
  const one = await run(adder)
  const other = await run(adder)
  // What nothing ends but the clock ends after this; on a machine where a sum takes long it is longer.
  const patience = Math.min(10_000, Math.max(1500, 20 * Math.max(one.durationMs, other.durationMs)))
  const spun = await run(endless, { deadlineMs: patience })
  const late = await run(endless, { fuel: 2n ** 62n, deadlineMs: 150 })
  const cases: ProbeCase[] = [
    {
      name: `an endless loop ends with its fuel: ${spun.outcome}`,
      held: spun.outcome === 'fuel_exhausted' && spun.fuelUsed === FUEL,
    },
    {
      name: `an endless loop with endless fuel ends with its time: ${late.outcome}`,
      held: late.outcome === 'deadline' && late.durationMs < patience,
    },
    { name: `2 + 3 are 5: ${one.outcome} ${one.message}`, held: one.outcome === 'done' && one.output[0] === 5 },
    { name: 'memory does not grow past its cap', held: one.output.length === 2 && one.output[1] === 1 },
    { name: 'the same work costs the same', held: (one.fuelUsed ?? 0n) > 0n && one.fuelUsed === other.fuelUsed },
  ]
  return { cases, evidence: `fuel for 2 + 3: ${one.fuelUsed ?? 0n}` }
}
