import { expect, it } from 'vitest'
import check from '../../../plugins/media/cli/check.ts'

const found = (used: object) =>
  check({ daemon: { call: async () => ({ used }) } } as unknown as Parameters<typeof check>[0])

it('doctor says which provider makes what, and what none makes', async () => {
  const openai = { provider: 'openai', model: 'gpt-image-2' }
  expect(await found({ images: openai, speech: null, transcription: null })).toEqual({
    state: 'ok',
    found: 'images by openai/gpt-image-2; no provider with a key makes speech, transcription',
  })
  expect(await found({ images: openai })).toEqual({ state: 'ok', found: 'images by openai/gpt-image-2' })
})
