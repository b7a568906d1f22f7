import { describe, expect, it } from 'vitest'
import { callKey, createGuard, guardLimits } from '../../../plugins/chat/safety/loop-guard.ts'

describe('the loop guard', () => {
  it('warns at the third and blocks at the fifth identical call', () => {
    const guard = createGuard()
    const actions = Array.from({ length: 5 }, (_, n) => {
      const { action } = guard.before('look', { at: 1 }, false)
      guard.after('look', { at: 1 }, false, `result ${n}`)
      return action
    })
    expect(actions).toEqual(['allow', 'allow', 'warn', 'warn', 'block'])
  })

  it('warns at the second identical result and blocks the call after the third', () => {
    const guard = createGuard()
    const seen: unknown[] = []
    for (let n = 0; n < 4; n++) {
      seen.push(guard.before('look', {}, false).action)
      seen.push(guard.after('look', {}, false, 'same') !== undefined)
    }
    expect(seen).toEqual(['allow', false, 'allow', true, 'warn', true, 'block', true])
  })

  it('takes calls with the same arguments in another order for the same', () => {
    expect(callKey('t', { a: 1, b: { c: [1, { x: 1, y: 2 }], d: null } })).toBe(
      callKey('t', { b: { d: null, c: [1, { y: 2, x: 1 }] }, a: 1 }),
    )
    expect(callKey('t', { a: [1, 2] })).not.toBe(callKey('t', { a: [2, 1] }))
    expect(callKey('t', { a: '1' })).not.toBe(callKey('t', { a: 1 }))
  })

  it.each([
    [['a', 'b'], 6],
    [['a', 'b', 'c'], 9],
  ])('blocks calls that alternate %j at call %i', (period, blockedAt) => {
    const guard = createGuard()
    let at = 0
    for (let n = 0; n < 20 && at === 0; n++) {
      const name = period[n % period.length] ?? ''
      const verdict = guard.before(name, {}, false)
      guard.after(name, {}, false, `${n}`)
      if (verdict.action === 'block') at = n + 1
    }
    expect(at).toBe(blockedAt)
  })

  it('ends the turn at the thirty-first call', () => {
    const guard = createGuard()
    const actions = Array.from({ length: 31 }, (_, n) => guard.before('look', { n }, false).action)
    expect(actions.slice(0, 30).every((action) => action === 'allow')).toBe(true)
    expect(actions[30]).toBe('end')
  })

  it('ends all who share a count when together they made more calls than one may', () => {
    const tally = { calls: 0 }
    const [asking, asked] = [createGuard(undefined, tally), createGuard(undefined, tally)]
    const ends: string[] = []
    for (let n = 0; n < 32; n++)
      if ((n % 2 === 0 ? asking : asked).before('look', { n }, false).action === 'end')
        ends.push(n % 2 === 0 ? 'asking' : 'asked')
    expect(ends).toEqual(['asking', 'asked'])
  })

  it('forgets a call of the alternation that is more than thirty calls ago, and not one that is thirty', () => {
    const guard = createGuard({ ...guardLimits, callsPerTurn: 1000 })
    for (const name of ['a', 'b', 'a', 'b', 'a']) guard.before(name, {}, false)
    for (let n = 0; n < 30; n++) guard.before('other', { n }, false)
    expect(guard.before('b', {}, false).action).toBe('warn')
  })

  it('lets tools that poll alternate nine times', () => {
    const guard = createGuard()
    const actions = Array.from({ length: 18 }, (_, n) => guard.before(n % 2 === 0 ? 'a' : 'b', {}, true).action)
    expect(actions.findIndex((action) => action === 'block')).toBe(17)
  })

  it('warns of one call three times and then blocks it', () => {
    const guard = createGuard({ ...guardLimits, blockCalls: 100 })
    const actions = Array.from({ length: 6 }, () => guard.before('look', {}, false).action)
    expect(actions).toEqual(['allow', 'allow', 'warn', 'warn', 'warn', 'block'])
  })

  it('is three times as patient with a tool that polls, and says how long to wait', () => {
    const guard = createGuard()
    const verdicts = Array.from({ length: 15 }, (_, n) => {
      const verdict = guard.before('poll', {}, true)
      guard.after('poll', {}, true, `${n}`)
      return verdict
    })
    expect(verdicts.map(({ action }) => action)).toEqual([...Array(8).fill('allow'), ...Array(6).fill('warn'), 'block'])
    expect(
      verdicts.slice(8, 13).map((verdict) => ('reason' in verdict ? /wait (\d+)/.exec(verdict.reason)?.[1] : '')),
    ).toEqual(['5', '10', '30', '60', '60'])
  })
})
