import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'

const plugin = new URL('./', import.meta.url)

it('greets over the API and through its tool, and counts', async () => {
  await using test = await startPlugin({ plugin, config: { plugins: { hello: { greeting: 'Welcome' } } } })
  expect(await test.request('GET', '/api/hello/Ada')).toMatchObject({
    status: 200,
    body: { text: 'Welcome, Ada!', greeted: 1 },
  })
  expect(await test.callTool('hello', { name: 'Ada' })).toMatchObject({ text: 'Welcome, Ada! (2)', failed: false })
  await test.reload()
  expect(await test.request('GET', '/api/hello/Ada')).toMatchObject({ body: { greeted: 3 } })
})

it('refuses to greet nobody', async () => {
  await using test = await startPlugin({ plugin })
  expect(await test.request('GET', '/api/hello/nobody')).toMatchObject({
    status: 404,
    body: { error: { code: 'greeting_not_found' } },
  })
})

it('greets an agent that is made, which calls the tool', async () => {
  await using test = await startPlugin({ plugin })
  const manifest_toml = 'name = "grace"\n[capabilities]\ntools = ["hello"]\n'
  const { body } = await test.request('POST', '/api/agents', { manifest_toml })
  expect(test.log.join('\n')).toContain('Hello, grace!')
  test.model.answer({ calls: [{ tool: 'hello', args: { name: 'Ada' } }] }, 'Done.')
  const { agent_id } = body as { agent_id: string }
  const answer = await test.request('POST', `/api/agents/${agent_id}/message`, { message: 'Greet Ada' })
  expect(answer).toMatchObject({ status: 200, body: { response: 'Done.' } })
})
