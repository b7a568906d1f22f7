import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { readSecret } from '../../../core/cli/secret-input.ts'

it.each([
  ['one chunk', ['first\nsecond\r\nthird\n']],
  ['pieces', ['fir', 'st\nsec', 'ond\r\nthi', 'rd']],
])('reads one line after the other from %s', async (_, chunks) => {
  const input = new PassThrough() as unknown as NodeJS.ReadStream & PassThrough
  for (const chunk of chunks) input.write(chunk)
  input.end()
  expect([await readSecret('', input), await readSecret('', input), await readSecret('', input)]).toEqual([
    'first',
    'second',
    'third',
  ])
})
