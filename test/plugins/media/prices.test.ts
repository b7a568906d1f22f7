import { describe, expect, it } from 'vitest'
import { costOf, imageTokens, priceOf } from '../../../plugins/media/prices.ts'
import { toSubtitles } from '../../../plugins/media/transcripts.ts'

describe('prices', () => {
  it('of a dated model are those of the model, and the operator corrects both', () => {
    expect(priceOf({}, 'openai', 'gpt-image-1-2025-04-23')).toEqual({ input: 5, output: 40 })
    const own = { 'openai/gpt-image-1': { image: 1 } }
    expect(priceOf(own, 'openai', 'gpt-image-1')).toEqual({ image: 1 })
    expect(priceOf(own, 'openai', 'gpt-image-1-2025-04-23')).toEqual({ image: 1 })
  })
  it('of tokens are those that the operator set for the model', () => {
    const usage = { tokens: { input: 1_000_000, output: 0 } }
    expect(costOf({ input: 5, output: 5 }, { input: 2, output: 2 }, { usage }).nano).toBe(2_000_000_000)
  })
  it('of words beside a picture are their own, and at most what is known of the model is reserved', () => {
    const model = 'gemini-nano-banana-2.1'
    const price = priceOf({}, 'gemini', model)
    expect(priceOf({}, 'vertex-ai', model)).toEqual(price)
    const usage = { tokens: { input: 100, output: 1_330, words: 210 } }
    // 100 at 1.5 USD a million, 1,120 at 30 and 210 at 7.5.
    expect(costOf(price, undefined, { images: 1, usage }).nano).toBe(150_000 + 33_600_000 + 1_575_000)
    // What an operator sets is for all of it.
    expect(costOf(price, { input: 1, output: 1 }, { usage }).nano).toBe(1_430_000)
    expect(imageTokens('', 1, 'low', price).output).toBe(6_000)
  })
  it('are estimated where the provider does not tell the seconds', () => {
    const price = { minute: 0.06 }
    expect(costOf(price, undefined, { seconds: 60, usage: {} })).toEqual({ nano: 60_000_000, estimated: true })
    expect(costOf(price, undefined, { seconds: 60, usage: { seconds: 10 } })).toEqual({
      nano: 10_000_000,
      estimated: false,
    })
    expect(costOf(undefined, undefined, { seconds: 60 }).nano).toBeNull()
  })
  it('of pictures are reserved by their quality', () => {
    expect(imageTokens('', 2, 'low').output).toBe(2_000)
    expect(imageTokens('', 2, undefined).output).toBe(32_000)
  })
})

it('subtitles have no blank line within a segment, and none ends before it begins', () => {
  expect(toSubtitles([{ start: 2, end: 1, text: ' one\n\n two ' }])).toBe(
    '1\n00:00:02,000 --> 00:00:02,000\none\ntwo\n',
  )
})
