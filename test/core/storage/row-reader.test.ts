import * as v from 'valibot'
import { expect, it } from 'vitest'
import { MAX_NAMED_ROWS, RowReader } from '../../../core/storage/row-reader.ts'

function reader() {
  const lines: unknown[] = []
  const schema = v.object({
    id: v.string(),
    size: v.number(),
    body: v.pipe(
      v.string(),
      v.transform((text): unknown => JSON.parse(text)),
    ),
  })
  return {
    lines,
    rows: new RowReader({
      table: 'test_row',
      key: ['id'],
      schema,
      log: { error: (line: unknown) => lines.push(line) },
    }),
  }
}

it('rows that cannot be read are left out, and each is named once without its values', () => {
  const { rows, lines } = reader()
  const stored = [
    { id: 'a', size: 1, body: '{}' },
    { id: 'b', size: 'secret', body: '{}' },
    { id: 'c', size: 3, body: 'secret' },
    { id: 'd', size: 4, body: '[]' },
  ]
  for (let times = 0; times < 2; times++) expect(rows.all(stored).map(({ id }) => id)).toEqual(['a', 'd'])
  expect(lines).toEqual([
    'the row of test_row with id "b" is left out: "size" is not as expected; the other rows are used, and it stays there',
    'the row of test_row with id "c" is left out: its JSON cannot be parsed; the other rows are used, and it stays there',
  ])
})

it('neither a long key nor many rows fill the log', () => {
  const { rows, lines } = reader()
  rows.one({ id: 'x'.repeat(1_000_000) })
  expect(String(lines[0]).length).toBeLessThan(400)
  for (let id = 0; id < MAX_NAMED_ROWS * 2; id++) expect(rows.one({ id: String(id) })).toBeUndefined()
  expect(lines).toHaveLength(MAX_NAMED_ROWS)
})

it('what has to be whole fails with the name of its row, and the first that can be read is found behind others', async () => {
  const { rows, lines } = reader()
  const [good, bad] = [
    { id: 'a', size: 1, body: '{}' },
    { id: 'b', size: 'secret', body: '{}' },
  ]
  expect([rows.one(undefined), rows.oneOrThrow(undefined), rows.oneOrThrow(good)?.id]).toEqual([
    undefined,
    undefined,
    'a',
  ])
  for (const read of [() => rows.oneOrThrow(bad), () => rows.allOrThrow([good, bad])])
    expect(read).toThrow('the row of test_row with id "b" cannot be read: "size" is not as expected')
  expect(lines).toEqual([])
  const stored = [bad, bad, good]
  expect((await rows.first(async (limit) => stored.slice(0, limit)))?.id).toBe('a')
  expect(await rows.first(async () => [])).toBeUndefined()
  expect(lines).toHaveLength(1)
})
