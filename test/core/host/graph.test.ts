import { describe, expect, it } from 'vitest'
import { dependentsOf, plan } from '../../../core/host/graph.ts'
import type { Node } from '../../../core/host/graph.ts'

const node = (name: string, requires: readonly string[] = [], provides: readonly string[] = [name]): Node => ({
  name,
  requires,
  provides,
})
const core = new Set(['daemon'])

describe('the order of plugins', () => {
  it('places every plugin after what it requires and keeps the given order otherwise', () => {
    const { order, refused } = plan(
      [
        node('chat', ['sessions', 'agents']),
        node('zebra'),
        node('sessions', ['agents']),
        node('agents', ['daemon']),
        node('alpha'),
      ],
      core,
    )
    expect(order).toEqual(['agents', 'sessions', 'chat', 'zebra', 'alpha'])
    expect([...refused]).toEqual([])
  })

  it('refuses a cycle and prints its path', () => {
    const { order, refused } = plan([node('a', ['b']), node('b', ['c']), node('c', ['a']), node('free')], core)
    expect(order).toEqual(['free'])
    expect(refused.get('a')).toBe('plugins require each other: a -> b -> c -> a')
    expect([...refused.keys()].sort()).toEqual(['a', 'b', 'c'])
  })

  it('refuses a plugin that requires itself', () => {
    expect(plan([node('a', ['a'])], core).refused.get('a')).toBe('plugins require each other: a -> a')
  })

  it('refuses a plugin outside the cycle that needs one inside', () => {
    const { refused } = plan([node('outside', ['a']), node('a', ['b']), node('b', ['a'])], core)
    expect(refused.get('outside')).toBe(
      'needs service "a" of plugin "a", which is not loaded: plugins require each other: a -> b -> a',
    )
  })

  it('names the plugin that would provide a missing service and why it is not there', () => {
    const { refused } = plan(
      [node('chat', ['agents'])],
      core,
      new Map([['agents', 'plugin "agents" provides it but is not loaded: setup failed: no disk']]),
    )
    expect(refused.get('chat')).toBe(
      'needs service "agents": plugin "agents" provides it but is not loaded: setup failed: no disk',
    )
  })

  it('says so when nobody provides a service', () => {
    expect(plan([node('chat', ['agents'])], core).refused.get('chat')).toBe(
      'needs service "agents", which no plugin provides',
    )
  })

  it('refuses the second provider of a service and keeps the first', () => {
    const { order, refused } = plan(
      [node('one', [], ['store']), node('two', [], ['store']), node('user', ['store'], [])],
      core,
    )
    expect(order).toEqual(['one', 'user'])
    expect(refused.get('two')).toBe('service "store" is provided by plugin "one" already')
  })
})

describe('dependents', () => {
  it('are those that require a service directly or through others', () => {
    const nodes = [
      node('agents'),
      node('sessions', ['agents']),
      node('kv'),
      node('chat', ['sessions']),
      node('webchat', [], []),
    ]
    expect(dependentsOf('agents', nodes)).toEqual(['sessions', 'chat'])
    expect(dependentsOf('kv', nodes)).toEqual([])
  })
})
