import { describe, expect, it } from 'vitest'
import { findPlaceholders, renderTemplate, renderValue } from '../../../plugins/workflows/templates/template.ts'

const variables = {
  input: 'cats',
  draft: 'A {{input}} of {{secret}}',
  secret: 'x',
  report: '{"items": [{"name": "n", "tags": ["a"]}], "total": 2}',
  'two-words': 'tw',
}
const render = (text: string, maxChars = 1_000): string => renderTemplate(text, variables, maxChars)

describe('a template', () => {
  it.each([
    ['Write about {{input}} and {{ input }}.', 'Write about cats and cats.'],
    ['{{draft}}', 'A {{input}} of {{secret}}'],
    ['{{report.items[0].name}} {{report.total}} {{report.items[0].tags}}', 'n 2 ["a"]'],
    ['{{report.items[9].name}}|{{input.x}}|{{missing}}', '||'],
    ['{{constructor}}{{__proto__}}{{report.__proto__}}{{report.toString}}', ''],
    ['\\{{input}} {input} {{}} {{ a b }} {{1}} }}{{', '{{input}} {input} {{}} {{ a b }} {{1}} }}{{'],
    ['{{two-words}}{{{input}}}', 'tw{cats}'],
  ])('%s', (text, expected) => {
    expect(render(text)).toBe(expected)
  })

  it('is never longer than the limit, however often it names a long value', () => {
    expect(render('{{input}}', 4)).toBe('cats')
    expect(() => render('{{input}}.', 4)).toThrow('longer than 4 characters (plugins.workflows.max_rendered_chars)')
    const big = { big: 'x'.repeat(1_000_000) }
    expect(() => renderTemplate('{{big}}'.repeat(5_000), big, 2_000_000)).toThrow('longer than 2000000')
  })

  it('is replaced in every text of a value, within one limit', () => {
    const value = { url: 'https://example.com/{{input}}', list: ['{{input}}', 3, null], deep: { on: true } }
    expect(renderValue(value, variables, 100)).toEqual({
      url: 'https://example.com/cats',
      list: ['cats', 3, null],
      deep: { on: true },
    })
    expect(() => renderValue(['{{input}}', '{{input}}'], variables, 7)).toThrow('longer than')
  })

  it('says which variables it reads, and where', () => {
    expect(findPlaceholders('a {{b}} \\{{c}} {{ d.e[0] }}')).toEqual([
      { name: 'b', at: 2 },
      { name: 'd', at: 15 },
    ])
  })
})
