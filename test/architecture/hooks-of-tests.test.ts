import { expect, it } from 'vitest'
import { sources } from './sources.ts'

it('modules that tests share register no hook at their top level, which only one of several files would have', () => {
  const wrong = sources('test', 'playground')
    .filter(({ path }) => !path.endsWith('.test.ts') && path !== 'test/support/run-cleanups.ts')
    .filter(({ text }) => /^(?:before|after)(?:Each|All)\(/m.test(text))
  expect(wrong.map(({ path }) => path)).toEqual([])
})
