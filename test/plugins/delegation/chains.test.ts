import { expect, it } from 'vitest'
import { Chains } from '../../../plugins/delegation/chains.ts'

it('a message into a session whose turn waits for the sender is a deadlock, at any distance', () => {
  const chains = new Chains()
  // Turn 1 asks in session x (turn 2), which asks in session y (turn 3).
  chains.add('turn-2', { from: 'turn-1', chain: ['a'], sessionId: 'x' })
  chains.add('turn-3', { from: 'turn-2', chain: ['a', 'b'], sessionId: 'y' })
  expect(chains.of('turn-3')).toEqual(['a', 'b'])
  expect(chains.deadlocks('turn-3', 'z')).toBe(false)
  expect(chains.deadlocks('turn-3', 'x')).toBe(true)
  expect(chains.deadlocks('turn-3', 'y')).toBe(true)
  expect(chains.deadlocks('turn-9', 'x')).toBe(false)
})

it('a ring of three that wait in line for each other is one too', () => {
  const chains = new Chains()
  chains.add('b1', { from: 'a0', chain: ['a'], sessionId: 'ab' })
  chains.add('c1', { from: 'b0', chain: ['b'], sessionId: 'bc' })
  chains.add('a1', { from: 'c0', chain: ['c'], sessionId: 'ca' })
  // The turn that runs in ab waits behind c1 in bc, that one behind a1 in ca.
  chains.add('c2', { from: 'b1', chain: ['a', 'b'], sessionId: 'bc' })
  chains.add('a2', { from: 'c1', chain: ['b', 'c'], sessionId: 'ca' })
  expect(chains.deadlocks('a1', 'ab')).toBe(true)
  expect(chains.deadlocks('a1', 'other')).toBe(false)
})

it('what is answered is forgotten', () => {
  const chains = new Chains()
  chains.add('turn-2', { from: 'turn-1', chain: ['a'], sessionId: 'x' })()
  expect(chains.of('turn-2')).toEqual([])
  expect(chains.deadlocks('turn-2', 'x')).toBe(false)
})
