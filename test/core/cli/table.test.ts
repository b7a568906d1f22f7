import { expect, it } from 'vitest'
import { renderTable } from '../../../core/cli/table.ts'

it('a wide character takes two columns, a combining one none', () => {
  expect(
    renderTable(
      ['NAME', 'N'],
      [
        ['日本', '1'],
        ['e\u0301te', '2'],
        ['👍🏽', '3'],
      ],
    ),
  ).toBe(['NAME  N', '日本  1', 'e\u0301te   2', '👍🏽    3'].join('\n'))
})
