import { expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

it('an image of an answered message becomes a note for a model that refuses images, in this turn and later ones', async () => {
  await using stage = await openChat({ config: { plugins: { providers: { tries: 1, breaker_failures: 1000 } } } })
  const agent = await stage.spawn('seer')
  const form = new FormData()
  form.append('file', new File([PNG], 'dot.png', { type: 'image/png' }))
  const upload = await stage.host.fetch(`/api/agents/${agent}/upload`, { method: 'POST', body: form })
  const { file_id } = await upload.json()
  const send = (message: string, attachments?: object[]) =>
    stage.host.json('POST', `/api/agents/${agent}/message`, { message, attachments })
  const sent = () => JSON.stringify(stage.fake.requests.at(-1)?.body.messages)

  stage.fake.script({ text: 'a dot' })
  expect((await send('what is this?', [{ file_id }])).status).toBe(200)
  expect(sent()).toContain('iVBORw0KGgo')

  // The model is another one now: it refuses every request with an image.
  stage.fake.always(({ body }) => (JSON.stringify(body).includes('iVBORw0KGgo') ? { status: 400 } : { text: 'fine' }))
  for (const message of ['and now?', 'and later?']) {
    const before = stage.fake.requests.length
    const { status, body } = await send(message)
    expect([status, body.response]).toEqual([200, 'fine'])
    expect(sent()).toContain('[An image was here. This model cannot read images.]')
    expect(stage.fake.requests.length - before).toBe(message === 'and now?' ? 2 : 1)
  }
  // What the question itself is about is not left out.
  expect((await send('and this one?', [{ file_id }])).status).toBe(500)
})
