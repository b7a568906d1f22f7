import type { Finding, ProbeCase } from '../../security/contract.ts'
import { createGuard } from '../safety/loop-guard.ts'
import type { Guard } from '../safety/loop-guard.ts'

/** Calls as a model makes them that goes in circles, through guards made like those of turns (security facts 1.15). */
export async function probe(): Promise<Finding> {
  const actions = (
    guard: Guard,
    calls: readonly (readonly [tool: string, args: unknown])[],
    polls = false,
  ): readonly string[] => calls.map(([tool, args]) => guard.before(tool, args, polls).action)
  const same = Array.from({ length: 5 }, () => ['look', { a: 1 }] as const)
  const orders = [
    ['look', { a: 1, b: { c: 2, d: 3 } }],
    ['look', { b: { d: 3, c: 2 }, a: 1 }],
    ['look', { a: 1, b: { c: 2, d: 3 } }],
  ] as const
  const alternating = Array.from({ length: 6 }, (_, at) => [at % 2 === 0 ? 'look' : 'find', {}] as const)
  const circling = Array.from({ length: 9 }, (_, at) => [['look', 'find', 'read'][at % 3] ?? '', {}] as const)
  const different = Array.from({ length: 31 }, (_, at) => ['look', { at }] as const)
  const cases: ProbeCase[] = [
    {
      name: 'the same call is warned of at the third time and blocked at the fifth',
      passed: actions(createGuard(), same).join() === 'allow,allow,warn,warn,block',
    },
    {
      name: 'the order of keys makes no other call',
      passed: actions(createGuard(), orders).join() === 'allow,allow,warn',
    },
    { name: 'two calls in turn are blocked', passed: actions(createGuard(), alternating).at(-1) === 'block' },
    { name: 'three calls in turn are blocked', passed: actions(createGuard(), circling).at(-1) === 'block' },
    {
      name: 'thirty different calls pass',
      passed: actions(createGuard(), different.slice(0, 30)).every((action) => action === 'allow'),
    },
    { name: 'the call after them ends the turn', passed: actions(createGuard(), different).at(-1) === 'end' },
    {
      name: 'a tool that polls has three times the patience',
      passed: actions(createGuard(), same, true).every((action) => action === 'allow'),
    },
    {
      name: 'an argument that says "status" has none',
      passed:
        actions(
          createGuard(),
          same.map(() => ['look', { status: 'poll, wait' }] as const),
        ).at(-1) === 'block',
    },
    { name: 'the same answer three times blocks the next call', passed: outcomes(createGuard()) },
  ]
  return { cases, evidence: 'scripted sequences through the guard of a turn' }
}

function outcomes(guard: Guard): boolean {
  const warned: boolean[] = []
  for (let round = 0; round < 3; round++) {
    guard.before('look', { a: 1 }, false)
    warned.push(guard.after('look', { a: 1 }, false, 'the same') !== undefined)
  }
  return warned.join() === 'false,true,true' && guard.before('look', { a: 1 }, false).action === 'block'
}
