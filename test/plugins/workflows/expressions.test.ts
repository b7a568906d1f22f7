import { describe, expect, it } from 'vitest'
import { compileExpression } from '../../../plugins/workflows/expressions/expression.ts'

const scope = {
  output: 'Approved: yes, the total is 42',
  score: '7.5',
  report: '{"items": [{"name": "a", "price": 3}, {"name": "b"}], "ok": true, "no-tax": 0}',
  list: ['x', 2],
  nothing: null,
}
const evaluate = async (text: string): Promise<boolean> => (await compileExpression(text)).evaluate(scope)

describe('a condition', () => {
  it.each([
    ['output contains "YES"', true],
    ['output contains "no way" or score > 7', true],
    ['not (output contains "yes") and true', false],
    ['score >= 7.5 and score < 8', true],
    ['score == 7.5', true],
    ['score != "7.5"', false],
    ["report.items[0].name == 'a'", true],
    ['report.items[1].price == null', true],
    ['length(report.items) == 2', true],
    ['report["no-tax"] == 0 and report.ok', true],
    ['report.items[7].name.first', false],
    ['output.anything == null', true],
    ['length(output) > 10', true],
    ['list contains "2" and list contains 2 and not (list contains "y")', true],
    ['output matches "total is \\\\d+$"', true],
    ['output matches "^total"', false],
    ['output matches "(?i)APPROVED"', true],
    ['"b" > "a" and not ("b" > 1)', true],
    ['missing', false],
    ['missing == nothing', true],
    ['"it\\"s" == \'it"s\'', true],
    ['constructor == null and report.__proto__ == null and report.toString == null', true],
    ['true or false and false', true],
    ['not not true', true],
    ['"false" or "0" or ""', false],
  ])('%s is %s', async (text, expected) => {
    expect(await evaluate(text)).toBe(expected)
  })

  it.each([
    ['', 'The expression is empty at character 1'],
    ['output = "x"', 'A comparison is written == at character 8: output ▸= "x"'],
    ['output == "x', 'The text in quotes does not end at character 11'],
    ['a && b', '"and" joins conditions at character 3'],
    ['output contains', 'A value is missing at character 16'],
    ['(a or b', '")" is missing at character 8'],
    ['a b', '"b" was not expected at character 3'],
    ['and b', 'A value is missing before "and" at character 1'],
    ['report.items[1.5]', 'An element has a whole number from 0 at character 14'],
    ['report.', 'The name of a field is missing at character 8'],
    ['process.exit(1)', '"(" was not expected at character 13'],
    ['x matches "("', 'The pattern is not valid'],
    [`${'('.repeat(60)}a`, 'Deeper than 50 levels'],
    [`${'not '.repeat(60)}a`, 'Deeper than 50 levels'],
    ['a '.repeat(2_000), 'longer than 2000 characters'],
  ])('%s is refused', async (text, message) => {
    await expect(compileExpression(text)).rejects.toThrow(message)
  })

  it('names what it reads', async () => {
    expect((await compileExpression('a.b == c and length(a) > d[0] or "e" == f')).names).toEqual(['a', 'c', 'd', 'f'])
  })

  it('matches a text that would take an ordinary regular expression for ever', async () => {
    const expression = await compileExpression('x matches "^(a+)+$"')
    expect(expression.evaluate({ x: `${'a'.repeat(50_000)}b` })).toBe(false)
  })

  it('takes a pattern out of a value as data', async () => {
    expect((await compileExpression('x matches p')).evaluate({ x: 'abc', p: 'b.' })).toBe(true)
    expect((await compileExpression('x matches p')).evaluate({ x: 'abc', p: '(' })).toBe(false)
  })
})
