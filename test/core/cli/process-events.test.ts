import { expect, test } from 'vitest'
import { watchProcess } from '../../../core/cli/process-events.ts'
import { createLog } from '../../../core/log/log.ts'

test('what a package prints is a line of the log, without secrets, for as long as the process serves', () => {
  const lines: string[] = []
  const log = createLog({ format: 'json', write: (line) => void lines.push(line) })
  log.registerSecret('the-secret-value')
  const before = console.warn
  {
    using _events = watchProcess(log)
    console.warn('[package] the token is the-secret-value')
  }
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 'warn', tag: 'console', msg: '[package] the token is ***' },
  ])
  expect(console.warn).toBe(before)
})
