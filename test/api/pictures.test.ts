import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const url = 'https://pictures.example/x.png'
const parts = [
  { type: 'text', text: 'look' },
  { type: 'image_url', image_url: { url } },
]
const routes: readonly (readonly [string, string, (agent: string) => string])[] = [
  ['POST', '/message', (agent) => `/api/agents/${agent}/message`],
  ['POST', '/message/stream', (agent) => `/api/agents/${agent}/message/stream`],
]

describe.each(routes)('%s %s', (method, _name, path) => {
  it.each([
    { message: parts },
    { message: 'look', image_url: url },
    { message: 'look', images: [url] },
    { message: 'look', content: parts },
    { message: 'look', media: { type: 'image', source: { type: 'base64', data: 'AAAA' } } },
    { message: 'look', photo: 'data:image/png;base64,AAAA' },
  ])('says of a picture in %j how it is sent, and sends nothing to the model', async (body) => {
    const before = stage.fake.requests.length
    const answer = await stage.host.json(method, path(stage.agent), body)
    expect([answer.status, answer.body.error]).toEqual([
      400,
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringMatching(/upload.*attachments.*file_id.*\/v1\/chat\/completions takes an image_url/),
      }),
    ])
    expect(stage.fake.requests.length).toBe(before)
  })
  it.each([
    { message: 'data:image/png;base64,AAAA is the beginning of what?' },
    { message: 'hi', sender_name: 'Ann', is_group: false, images: [] },
  ])('takes %j', async (body) => {
    expect((await stage.post(path(stage.agent), body)).status).toBe(200)
  })
})

it('GET /stream says how a picture is sent', async () => {
  const answer = await stage.host.json('GET', `/api/agents/${stage.agent}/stream?message=look&image_url=${url}`)
  expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringMatching(/attachments/)])
})
