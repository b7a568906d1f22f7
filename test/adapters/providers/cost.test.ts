import { describe, expect, it } from 'vitest'
import { costNano, isPlausible, toUsd } from '../../../adapters/providers/contract.ts'
import type { Price, Usage } from '../../../adapters/providers/contract.ts'

const price: Price = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 }
const MILLION = 1_000_000
const usd = (of: Price | undefined, usage: Usage) => toUsd(costNano(of, usage))

describe('what a call costs', () => {
  it.each<[string, Price, Usage, number]>([
    ['a million in', price, { input: MILLION, output: 0 }, 3],
    ['a million out', price, { input: 0, output: MILLION }, 15],
    ['one token in', price, { input: 1, output: 0 }, 0.000003],
    ['all from the cache', price, { input: MILLION, output: 0, cachedInput: MILLION }, 0.3],
    ['all written to the cache', price, { input: MILLION, output: 0, cacheWrite: MILLION }, 3.75],
    [
      'some of each',
      price,
      { input: 1000, output: 500, cachedInput: 600, cacheWrite: 300 },
      (100 * 3 + 600 * 0.3 + 300 * 3.75 + 500 * 15) / MILLION,
    ],
    ['thinking, which is output', price, { input: 0, output: 1000, thinking: 900 }, 0.015],
    [
      'the cache without prices of its own',
      { input: 2, output: 8 },
      { input: 1000, output: 0, cachedInput: 400, cacheWrite: 300 },
      0.002,
    ],
    ['a model that is free', { input: 0, output: 0 }, { input: MILLION, output: MILLION }, 0],
    ['a price below a cent for a million', { input: 0.018, output: 0.05 }, { input: 1, output: 1 }, 0.000000068],
  ])('%s', (_, of, usage, expected) => {
    expect(usd(of, usage)).toBe(expected)
  })

  it('is not known without a price, and never 0 for that reason', () => {
    expect(costNano(undefined, { input: 5, output: 5 })).toBeNull()
    expect(toUsd(null)).toBeNull()
  })
  it('is rounded once, half up, by less than a billionth of a dollar', () => {
    expect(costNano({ input: 0.0005, output: 0 }, { input: 1, output: 0 })).toBe(1)
    expect(costNano({ input: 0.0004, output: 0 }, { input: 1, output: 0 })).toBe(0)
    expect(costNano({ input: 0.0004, output: 0 }, { input: 10, output: 0 })).toBe(4)
  })
  it('is whole, so a million calls of a dime of a cent are exactly what they are', () => {
    const one = costNano({ input: 0.1, output: 0.2 }, { input: 7, output: 3 }) ?? 0
    let sum = 0
    for (let call = 0; call < MILLION; call++) sum += one
    expect(toUsd(sum)).toBe(1.3)
  })
  it('stays whole for the most a usage can be', () => {
    const most: Usage = { input: 100_000_000, output: 100_000_000 }
    expect(isPlausible(most)).toBe(true)
    const nano = costNano({ input: 600, output: 600 }, most)
    expect(nano).toBe(120_000 * 1_000_000_000)
    expect(Number.isSafeInteger(nano)).toBe(true)
  })
  it('takes the higher rates of a long request for all of it, and what a request itself costs', () => {
    const long: Price = { input: 1, output: 10, long: { input: 2, output: 15, aboveInput: 200_000 } }
    expect(usd(long, { input: 200_000, output: 1000 })).toBe(0.21)
    expect(usd(long, { input: 200_001, output: 1000 })).toBe(0.415002)
    expect(usd({ input: 1, output: 1, request: 0.005 }, { input: 1000, output: 0 })).toBe(0.006)
  })
})
