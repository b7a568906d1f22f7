import { expect, it } from 'vitest'
import { nameTools } from '../../../plugins/mcp/tools/names.ts'

const named = (servers: Readonly<Record<string, readonly string[]>>): Record<string, string> =>
  Object.fromEntries(
    [
      ...nameTools(
        Object.entries(servers).flatMap(([server, tools]) => tools.map((tool) => ({ server, tool }))),
        Object.keys(servers),
      ),
    ].map(([name, { server, tool }]) => [name, `${server} ${tool}`]),
  )

it('a server gets no name that begins as those of another, whichever lists first or lists at all', () => {
  for (const servers of [
    { a: ['b_c', 'b'], 'a-b': ['c'] },
    { 'a-b': ['c'], a: ['b_c', 'b'] },
    { 'a-b': [], a: ['b_c', 'b'] },
  ]) {
    const names = named(servers)
    for (const [name, tool] of Object.entries(names))
      expect([name, name.startsWith('mcp_a_b_')]).toEqual([name, tool.startsWith('a-b')])
    expect(names['mcp_a_b']).toBe('a b')
    expect(Object.keys(names).find((name) => names[name] === 'a b_c')).toMatch(/^mcp_a_[0-9a-f]{8}_b_c$/)
  }
})

it('tools of a server that are written alike have the same names in any order', () => {
  const lists = [['get-it', 'get_it', 'Get_it'].toReversed(), ['get_it', 'Get_it', 'get-it']]
  const [one, other] = lists.map((a) => named({ a }))
  expect(one).toEqual(other)
  expect(one?.['mcp_a_get_it']).toBe('a get_it')
})
