import { Refusal } from 'svc/sdk'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkImages } from '../../../plugins/providers/driver-media.ts'
import { openGemini } from '../../support/gemini-stage.ts'
import type { GeminiStage } from '../../support/gemini-stage.ts'

const PICTURE = Uint8Array.of(0x89, 0x50, 1)
const MODEL = 'gemini-nano-banana-2.1'
let stage: GeminiStage
beforeAll(async () => {
  stage = await openGemini()
})
afterAll(() => stage[Symbol.asyncDispose]())
const draw = (more: object = {}) =>
  stage.client.createImages?.(
    { model: MODEL, prompt: 'A kite', count: 1, ...more },
    new AbortController().signal,
  ) as Promise<{ readonly images: readonly Uint8Array[]; readonly usage: object }>

it.each([
  ['16:9', '16:9'],
  ['2k', '2K'],
  ['9:16/4K', '9:16/4K'],
  ['1024x1024', '1:1'],
  ['1536x1024', '3:2'],
  ['2048x2048', '1:1/2K'],
  ['2160x3840', '9:16/4K'],
])('a size of %s is asked for as %s', async (size, asked) => {
  stage.fake.playPicture(PICTURE)
  await draw({ size })
  expect(stage.fake.heardPicture().size).toBe(asked)
})

it('the smallest size is for models that make it', async () => {
  stage.fake.playPicture(PICTURE)
  await draw({ model: 'gemini-3.1-flash-image', size: '1:8/512' })
  expect(stage.fake.heardPicture().size).toBe('1:8/512')
  await expect(draw({ size: '512' })).rejects.toThrow('image_size is not supported')
})

it('drafts are no pictures, and words are counted apart', async () => {
  stage.fake.playPicture(PICTURE)
  const { images, usage } = await draw()
  expect(images.map((each) => [...each])).toEqual([[...PICTURE]])
  // 1,130 of the answer with 10 of words, and 200 of thoughts.
  expect(usage).toEqual({ tokens: { input: 10, output: 1_330, words: 210 } })
  expect(checkImages('gemini', { images, usage }, 1).usage).toEqual(usage)
  expect(stage.fake.heardPicture()).toEqual({ model: MODEL, prompt: 'A kite', count: 1 })
})

it.each([
  [{ count: 2 }, 'count: gemini makes one picture in a call'],
  [{ quality: 'low' }, 'quality: gemini knows none'],
  [{ size: '1000x700' }, 'size: gemini takes one of 1:1,'],
  [{ size: '16:9/8K' }, 'size: gemini takes one of 1:1,'],
  [{ size: 'large' }, 'both as in 16:9/2K'],
])('%j is refused before anything is sent', async (more, why) => {
  const before = stage.fake.calls.length
  const refusal: unknown = await draw(more).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(Refusal)
  expect(String(refusal)).toContain(why)
  expect(stage.fake.calls.length).toBe(before)
})

it.each([
  [{ finishReason: 'IMAGE_SAFETY' }, 'made no picture (IMAGE_SAFETY): I cannot.'],
  [{ blockReason: 'PROHIBITED_CONTENT' }, 'refused the prompt (PROHIBITED_CONTENT)'],
])('%j is a refusal of the provider', async (answer, why) => {
  stage.fake.playPicture(answer)
  await expect(draw()).rejects.toMatchObject({ reason: 'content_filter', message: expect.stringContaining(why) })
})

it('a model that makes no pictures is refused in the words of the provider', async () => {
  await expect(draw({ model: 'gemini-2.5-flash' })).rejects.toThrow('response modalities (IMAGE) is not supported')
})
