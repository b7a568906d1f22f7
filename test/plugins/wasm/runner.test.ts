import { afterAll, describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import { GuestProcess } from '../../../plugins/wasm/guest-process.ts'
import type { GuestRequest, GuestResult } from '../../../plugins/wasm/contract.ts'
import { answer, constant, echo, guest, leb, list, ROOM, signed, text } from './assemble.ts'
import type { Parts } from './assemble.ts'

const runner = new GuestProcess()
afterAll(() => {
  runner[Symbol.dispose]()
})
const run = (parts: Parts, more: Partial<GuestRequest> = {}): Promise<GuestResult> =>
  runner.run({ module: guest(parts), input: Buffer.from('hello'), deadlineMs: 20_000, ...more })
const endless = [0x03, 0x40, 0x0c, 0, 0x0b, ...answer(0, 0)]
const hostCall = [...text('svc'), ...text('host_call'), 0, 1]
const hostLog = [...text('svc'), ...text('host_log'), 0, 3]

describe('a guest', () => {
  it('gets its input and gives its answer, for the same fuel each time', async () => {
    const ends = await Promise.all([run({}), run({}), run({})])
    for (const end of ends)
      expect(end).toMatchObject({ outcome: 'done', message: '', output: Uint8Array.from(Buffer.from('hello')) })
    // alloc: one constant; execute: seven instructions.
    expect(ends.map(({ fuelUsed }) => fuelUsed)).toEqual([8n, 8n, 8n])
  })

  it('is ended by its fuel, of which the same is used each time', async () => {
    expect(await run({ execute: endless }, { fuel: 12_345n })).toMatchObject({
      outcome: 'fuel_exhausted',
      fuelUsed: 12_345n,
    })
    expect(await run({ execute: [0x10, 2, ...answer(0, 0)], more: [[0x10, 2]] }, { fuel: 5_000n })).toMatchObject({
      outcome: 'fuel_exhausted',
    })
    expect(await run({}, { fuel: 7n })).toMatchObject({ outcome: 'fuel_exhausted', fuelUsed: 7n })
    expect(await run({}, { fuel: 8n })).toMatchObject({ outcome: 'done' })
  })

  it('pays for moving memory by its length, and for growing', async () => {
    const fill = (bytes: number): number[] => [
      ...constant(2048),
      ...constant(1),
      ...constant(bytes),
      0xfc,
      11,
      0,
      ...answer(0, 0),
    ]
    const [small, large] = await Promise.all([run({ execute: fill(10) }), run({ execute: fill(1010) })])
    expect((large.fuelUsed ?? 0n) - (small.fuelUsed ?? 0n)).toBe(1000n)
    expect(await run({ execute: fill(60_000) }, { fuel: 50_000n })).toMatchObject({ outcome: 'fuel_exhausted' })
    expect((await run({ execute: [...constant(1), 0x40, 0, 0x1a, ...answer(0, 0)] })).fuelUsed).toBeGreaterThan(1000n)
  })

  it('is ended by its own clock, and its neighbours go on', async () => {
    const [late, other] = await Promise.all([run({ execute: endless }, { fuel: 2n ** 62n, deadlineMs: 400 }), run({})])
    expect(late).toMatchObject({ outcome: 'deadline', fuelUsed: undefined })
    expect(other.outcome).toBe('done')
  })

  it('gets no more memory than it may have', async () => {
    const grow = [...constant(300), 0x40, 0, ...constant(-1), 0x46, 0x04, 0x40, 0x00, 0x0b, ...answer(0, 0)]
    expect(await run({ execute: grow })).toMatchObject({ outcome: 'memory_limit' })
    expect(
      await run(
        { execute: [...constant(1), 0x40, 0, ...constant(-1), 0x46, 0x04, 0x40, 0x00, 0x0b, ...answer(0, 0)] },
        { memoryBytes: 65_536 },
      ),
    ).toMatchObject({ outcome: 'memory_limit' })
    expect(await run({ memory: [0, ...leb(300)] })).toMatchObject({ outcome: 'memory_limit' })
    // Who looks at what growing gave, and goes on with less, is well.
    expect(await run({ execute: [...constant(300), 0x40, 0, 0x1a, ...answer(0, 0)] })).toMatchObject({
      outcome: 'done',
    })
  })

  it.each<[what: string, parts: Parts, fuel?: bigint]>([
    ['runs into what is unreachable', { execute: [0x00] }],
    ['reads outside its memory', { execute: [...constant(-1), 0x28, 2, 0, 0x1a, ...answer(0, 0)] }],
    ['divides by zero', { execute: [...constant(1), ...constant(0), 0x6d, 0x1a, ...answer(0, 0)] }],
    ['calls itself without end', { execute: [0x10, 2, ...answer(0, 0)], more: [[0x10, 2]] }, 2n ** 62n],
  ])('that %s traps', async (_what, parts, fuel) => {
    expect(await run(parts, fuel === undefined ? {} : { fuel })).toMatchObject({ outcome: 'trap' })
  })

  it.each<[what: string, parts: Parts]>([
    ['answers with more than its memory holds', { execute: answer(65_530, 100) }],
    ['answers from before its memory', { execute: answer(-1, 10) }],
    ['answers from behind its memory', { execute: answer(2 ** 31 - 1, 2 ** 20) }],
    ['exports no function', { sections: { 7: list([[...text('memory'), 2, 0]]) } }],
    ['imports what there is not', { imports: [[...text('svc'), ...text('other'), 0, 0]] }],
    ['returns without an answer', { execute: [0x0f] }],
    [
      'logs from outside its memory',
      { imports: [hostLog], execute: [...constant(1), ...constant(-8), ...constant(16), 0x10, 0, ...answer(0, 0)] },
    ],
  ])('that %s breaks the contract', async (_what, parts) => {
    expect(await run(parts)).toMatchObject({ outcome: 'abi' })
  })

  it('is told how long an answer may be when its own is longer', async () => {
    expect(await run({ execute: answer(0, 2_000_000), memory: [0, 40] })).toMatchObject({
      outcome: 'abi',
      message: expect.stringContaining('at most 1048576') as string,
    })
  })

  it('that is no module breaks the contract', async () => {
    const result = await runner.run({ module: Buffer.from('no module'), input: new Uint8Array(0) })
    expect(result).toMatchObject({ outcome: 'abi' })
  })

  it('asks the host, which decides what it gets, and pays for it', async () => {
    const asking = { imports: [hostCall], execute: [0x20, 0, 0x20, 1, 0x10, 0] }
    const asked: string[] = []
    const end = await run(asking, {
      host: (request) => {
        asked.push(Buffer.from(request).toString())
        return Promise.resolve(Buffer.from('granted'))
      },
    })
    expect([asked, Buffer.from(end.output).toString(), end.outcome]).toEqual([['hello'], 'granted', 'done'])
    expect(end.fuelUsed).toBeGreaterThan(100n)
    expect(await run(asking, { host: () => Promise.reject(new Error('a path')) })).toMatchObject({
      outcome: 'abi',
      message: 'the host refused: failed',
    })
    expect(await run(asking, { host: () => Promise.reject(new Refusal('forbidden', 'not granted')) })).toMatchObject({
      outcome: 'abi',
      message: 'the host refused: not granted',
    })
    expect(await run(asking)).toMatchObject({ outcome: 'done', output: new Uint8Array(0) })
    expect(await run(asking, { fuel: 50n })).toMatchObject({ outcome: 'fuel_exhausted' })
    expect(await run(asking, { host: () => new Promise(() => {}), deadlineMs: 500 })).toMatchObject({
      outcome: 'deadline',
    })
    expect(
      await run({ imports: [hostLog], execute: [...constant(2), 0x20, 0, 0x20, 1, 0x10, 0, ...answer(0, 0)] }),
    ).toMatchObject({ outcome: 'done', log: '2 hello\n' })
  })

  it('ends with the signal of whoever started it', async () => {
    const stop = new AbortController()
    const running = run({ execute: endless }, { fuel: 2n ** 62n, signal: stop.signal })
    stop.abort(new Error('unloaded'))
    await expect(running).rejects.toThrow('unloaded')
  })

  it('waits while four others run, and is refused when too many wait', async () => {
    using own = new GuestProcess()
    const stop = new AbortController()
    const many = Array.from({ length: 68 }, () =>
      own.run({ module: guest({ execute: endless }), input: new Uint8Array(0), fuel: 2n ** 62n, signal: stop.signal }),
    )
    const settled = Promise.allSettled(many)
    await expect(own.run({ module: guest(), input: new Uint8Array(0) })).rejects.toMatchObject({ code: 'rate_limit' })
    stop.abort(new Error('enough'))
    expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
    expect((await own.run({ module: guest(), input: new Uint8Array(0) })).outcome).toBe('done')
  })
})

describe('the process of the guests', () => {
  it('ends when there are none, and its end does not touch those that came after', async () => {
    using own = new GuestProcess({ idleMs: 0 })
    for (let round = 0; round < 6; round++) {
      const end = await own.run({ module: guest(), input: Buffer.from('x'), deadlineMs: 20_000 })
      expect([round, end.outcome]).toEqual([round, 'done'])
      // The idle process is asked to end now; the next guest starts before it is gone.
      await new Promise((resolve) => {
        setTimeout(resolve, 1)
      })
    }
  })
})

describe('made up programs', () => {
  /** The same at every run. */
  function numbers(seed: number): (below: number) => number {
    let state = seed
    return (below) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor(state / 65_536) % below
    }
  }
  /** Blocks, loops and branches in any order, without values: whatever label is meant exists. */
  function program(next: (below: number) => number, depth: number, size: number): number[] {
    const out: number[] = []
    for (let at = 0; at < size; at++) {
      const kind = next(9)
      if (kind < 2 && depth < 6) out.push(0x03, 0x40, ...program(next, depth + 1, 1 + next(4)), 0x0b)
      else if (kind === 2 && depth < 6) out.push(0x02, 0x40, ...program(next, depth + 1, 1 + next(4)), 0x0b)
      else if (kind === 3 && depth < 6)
        out.push(
          ...constant(next(2)),
          0x04,
          0x40,
          ...program(next, depth + 1, 1 + next(3)),
          0x05,
          ...program(next, depth + 1, 1 + next(3)),
          0x0b,
        )
      else if (kind === 4) out.push(...constant(next(2)), 0x0d, ...leb(next(depth)))
      else if (kind === 5)
        out.push(...constant(next(4)), 0x0e, 2, ...leb(next(depth)), ...leb(next(depth)), ...leb(next(depth)))
      else if (kind === 6) out.push(0x10, ...leb(2 + next(3)))
      else if (kind === 7) out.push(0x0c, ...leb(next(depth)))
      else out.push(...constant(ROOM), 0x42, ...signed(BigInt(next(1000))), 0x37, 3, 0)
    }
    return out
  }

  it('all end: thirty-two of them, many of which would run for ever', async () => {
    const next = numbers(11)
    const modules = Array.from({ length: 32 }, () =>
      guest({
        execute: [0x10, 2, ...answer(0, 0)],
        more: [program(next, 1, 8), program(next, 1, 8), program(next, 1, 8)],
      }),
    )
    const ends = await Promise.all(
      modules.map((module) => runner.run({ module, input: new Uint8Array(0), fuel: 50_000n, deadlineMs: 25_000 })),
    )
    const counts = Map.groupBy(ends, ({ outcome }) => outcome)
    expect(
      [...counts.keys()]
        .toSorted()
        .filter((outcome) => outcome !== 'done' && outcome !== 'fuel_exhausted' && outcome !== 'trap'),
    ).toEqual([])
    expect(counts.get('fuel_exhausted')?.length).toBeGreaterThan(4)
    expect(counts.get('done')?.length).toBeGreaterThan(1)
  })

  it('echoes are echoes after all of it', async () => {
    expect((await run({ execute: echo })).outcome).toBe('done')
  })
})
