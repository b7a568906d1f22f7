import { describe, expect, it } from 'vitest'
import type { Turn } from 'svc/providers'
import { inject } from '../../../plugins/chat/context/request.ts'

const user = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })
const answer: Turn = { role: 'assistant', text: 'answered', calls: [] }

describe('what a manifest puts into every conversation', () => {
  it('stands after the system prompt, with its name', () => {
    expect(
      inject('You help.', [user('hello')], [{ name: 'house rules', content: 'No shoes.', position: 'system' }]).system,
    ).toBe('You help.\n\n[house rules]\nNo shoes.')
    expect(inject('', [user('hello')], [{ content: 'Alone.', position: 'system' }]).system).toBe('Alone.')
  })
  it('stands right before the question, and not before an earlier one', () => {
    const { turns, system } = inject(
      's',
      [user('one'), answer, user('two'), { role: 'tool', callId: 'c', tool: 't', text: 'x', failed: false }],
      [{ content: 'Today is Monday.', position: 'before_user' }],
    )
    expect(system).toBe('s')
    expect(turns[0]).toEqual(user('one'))
    expect(turns[2]).toEqual({
      role: 'user',
      parts: [
        { type: 'text', text: 'Today is Monday.' },
        { type: 'text', text: 'two' },
      ],
    })
  })
  it('is said after a reset only until something was answered', () => {
    const rule = [{ content: 'Introduce yourself.', position: 'after_reset' as const }]
    expect(inject('', [user('hello')], rule).system).toBe('Introduce yourself.')
    expect(inject('', [user('hello'), answer, user('again')], rule).system).toBe('')
  })
  it('is said only where the question holds its condition, in whatever case', () => {
    const rule = [{ content: 'Prices are in euro.', position: 'system' as const, condition: 'Price' }]
    expect(inject('', [user('what PRICE is it?')], rule).system).toBe('Prices are in euro.')
    expect(inject('', [user('price?'), answer, user('and the colour?')], rule).system).toBe('')
  })
  it('changes nothing where there is none', () => {
    const turns = [user('hello')]
    expect(inject('s', turns, [])).toEqual({ system: 's', turns })
  })
})
