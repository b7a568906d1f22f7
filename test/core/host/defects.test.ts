import { createConsola } from 'consola'
import { expect, it } from 'vitest'
import { ServerAway, unavailable } from '../../../core/storage/failure.ts'
import { Defects } from '../../../core/host/defects.ts'

function bench() {
  const lines: { readonly type: string; readonly args: readonly unknown[] }[] = []
  const seen: string[] = []
  const log = createConsola({ reporters: [{ log: ({ type, args }) => lines.push({ type, args }) }] })
  return { lines, seen, defects: new Defects(log, (_error, where) => seen.push(where)) }
}

it('counts a failure and writes it to the log with its stack', () => {
  const { defects, lines, seen } = bench()
  const error = new Error('no')
  defects.report(error, 'plugin "one", job sweep')
  expect(defects.count).toBe(1)
  expect(seen).toEqual(['plugin "one", job sweep'])
  expect(lines).toEqual([{ type: 'error', args: ['plugin "one", job sweep', error] }])
})

it.each([new ServerAway('The database server does not answer', undefined), unavailable('The disk is full')])(
  'a database that is away is no defect: one line says what has to wait: $message',
  (error) => {
    const { defects, lines, seen } = bench()
    defects.report(error, 'plugin "one", job sweep')
    expect(defects.count).toBe(0)
    expect(seen).toEqual([])
    expect(lines).toEqual([{ type: 'warn', args: [`plugin "one", job sweep: ${error.message}`] }])
  },
)
