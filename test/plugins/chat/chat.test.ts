import { expect, test } from 'vitest'
import { startHost } from '../../support/host.ts'

test('a message is answered', async () => {
  await using host = await startHost()
  console.log(host.log.filter((l) => /warn|error|not loaded/i.test(l)).join('\n'))
  const agents = await host.json('GET', '/api/agents')
  console.log(agents.body)
  const id = agents.body[0].id
  console.log((await host.json('POST', `/api/agents/${id}/message`, { message: 'hello' })))
  console.log((await (await host.fetch(`/api/agents/${id}/message/stream`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message: '/tools' }) })).text()))
  console.log(JSON.stringify((await host.json('GET', `/api/agents/${id}/session`)).body, null, 1))
  console.log((await host.json('POST', `/v1/chat/completions`, { messages: [{ role: 'user', content: 'what time is it' }] })).body)
  console.log((await host.json('GET', `/v1/models`)).body)
  expect(1).toBe(1)
})
