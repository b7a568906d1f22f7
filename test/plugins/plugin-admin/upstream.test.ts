import { expect, it } from 'vitest'
import { upstream } from '../../../plugins/plugin-admin/upstream.ts'

const plugin = (name: string, requires: string[], provides: string[] = [name]) => ({ name, requires, provides })
const plugins = [
  plugin('a', ['b', 'core']),
  plugin('b', ['c']),
  plugin('c', []),
  plugin('d', ['c']),
  plugin('e', ['f']),
  plugin('f', ['e']),
]

it('finds everything a plugin requires, at any depth, and nothing else', () => {
  expect([...upstream(plugins, 'a')].sort()).toEqual(['b', 'c'])
  expect([...upstream(plugins, 'c')]).toEqual([])
  expect([...upstream(plugins, 'nobody')]).toEqual([])
})

it('ends on a circle', () => {
  expect([...upstream(plugins, 'e')].sort()).toEqual(['e', 'f'])
})
