import { EMOJI_NAMES, emojiName, findEmojiName } from 'svc/channels'
import { describe, expect, it } from 'vitest'

describe('names of emoji', () => {
  it('are found for a character, with or without its variation selector, and for a name', () => {
    expect(['⚠️', '⚠', '❤', '👍', 'eyes', ':party_parrot:'].map((emoji) => findEmojiName(emoji, EMOJI_NAMES))).toEqual([
      'warning',
      'warning',
      'heart',
      '+1',
      'eyes',
      'party_parrot',
    ])
  })

  it('are asked for where there is none, and nothing of JavaScript is taken for one', () => {
    expect(() => emojiName('slack', '🦑', EMOJI_NAMES)).toThrow('not known: give the name')
    expect(emojiName('slack', 'constructor', EMOJI_NAMES)).toBe('constructor')
    expect(findEmojiName('a'.repeat(101), EMOJI_NAMES)).toBeUndefined()
  })
})
