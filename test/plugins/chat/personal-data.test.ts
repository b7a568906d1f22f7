import { describe, expect, it } from 'vitest'
import { holdsPersonalData } from '../../../plugins/chat/safety/labels.ts'

describe('personal data in a text', () => {
  it.each([
    ['a card', 'my card is 4111 1111 1111 1111, thanks'],
    ['a card without spaces', '5500005555555559'],
    ['another card', '3782-822463-10005'],
    ['an account', 'pay to DE89 3704 0044 0532 0130 00 please'],
    ['an account without spaces', 'GB82WEST12345698765432'],
    ['a social security number', 'SSN 078-05-1120'],
  ])('finds %s', (_, text) => {
    expect(holdsPersonalData(text, 'identifiers')).toBe(true)
    expect(holdsPersonalData(text, 'off')).toBe(false)
  })
  it.each([
    ['a wrong check digit', '4111 1111 1111 1112'],
    ['a moment in milliseconds', '1763673600000'],
    ['an order number', 'order 1234567890123456'],
    ['a wrong account', 'DE89 3704 0044 0532 0130 01'],
    ['a version', '10.20.30.40'],
    ['a date', '2026-11-20T21:47:11Z'],
    ['a hash', 'a3f5c1d2e4b60718293a4b5c6d7e8f90'],
    ['a UUID', '019a9f3e-5b7c-7000-8000-123456789012'],
    ['a sum', '1,234,567.89'],
    ['words', 'nothing of the kind'],
  ])('does not take %s for it', (_, text) => {
    expect(holdsPersonalData(text, 'contacts')).toBe(false)
  })
  it('finds addresses and telephone numbers where they are asked for', () => {
    for (const text of ['write to jane.doe@example.com', 'call +49 30 901820']) {
      expect(holdsPersonalData(text, 'contacts')).toBe(true)
      expect(holdsPersonalData(text, 'identifiers')).toBe(false)
    }
  })
  // A search that grows with the square would need minutes here, and the time limit of a test ends it.
  it('searches hostile texts of a megabyte', () => {
    for (const text of [
      '4'.repeat(1_000_000),
      '4 '.repeat(500_000),
      'DE89 '.repeat(200_000),
      'a.'.repeat(500_000),
      '+1 '.repeat(300_000),
    ])
      expect(typeof holdsPersonalData(text, 'contacts')).toBe('boolean')
  })
})
