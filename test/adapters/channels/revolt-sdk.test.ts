import { Client } from 'stoat.js'
import { expect, it } from 'vitest'
import { startFakeRevolt } from '../../support/platforms/revolt.ts'
import type { FakeRevolt } from '../../support/platforms/revolt.ts'

// The platform's own client against our fake: what it cannot work with is not what the platform does.

function clientOf(fake: FakeRevolt) {
  const client = new Client({ baseURL: String(fake.config['base_url']), autoReconnect: false })
  const problems: unknown[] = []
  client.on('error', (problem) => void problems.push(problem))
  return { client, problems }
}

it('stoat.js signs in, receives, sends, replies, edits, reacts, types and uploads', async () => {
  await using fake = await startFakeRevolt()
  const { client, problems } = clientOf(fake)
  const texts: string[] = []
  client.on('messageCreate', (message) => void texts.push(`${message.author?.username}: ${message.content}`))
  const ready = new Promise<void>((resolve) => client.on('ready', () => resolve()))
  await client.loginBot(String(fake.config['token']))
  await ready
  expect(client.user?.username).toBe('svc')
  const question = await fake.deliver({ text: 'one', isGroup: true })
  await expect.poll(() => texts).toEqual(['ada: one'])
  const channel = client.channels.get(fake.chats.group!)!
  const sent = await channel.sendMessage({ content: 'hello', replies: [{ id: question, mention: false }] }, 'key-1')
  // A key that was used is refused.
  await expect(channel.sendMessage('hello', 'key-1')).rejects.toContain('DuplicateNonce')
  await sent.edit({ content: 'changed' })
  await client.messages.get(question)!.react(encodeURIComponent('👍'))
  channel.startTyping()
  const file = await client.uploadFile('attachments', new File(['abc'], 'a.txt', { type: 'text/plain' }))
  await channel.sendMessage({ attachments: [file] })
  expect(fake.sent).toMatchObject([
    { text: 'changed', replyTo: question },
    { text: '', files: [{ name: 'a.txt' }] },
  ])
  expect(fake.reactions).toEqual([{ messageId: question, emoji: '👍' }])
  await expect.poll(() => fake.typing).toEqual([fake.chats.group])
  await expect(channel.fetchMessages({ sort: 'Oldest', limit: 100 })).resolves.toHaveLength(3)
  client.events.disconnect()
  expect(problems).toEqual([])
  expect(fake.violations).toEqual([])
})

it('stoat.js is refused with a wrong token as our adapter is', async () => {
  await using fake = await startFakeRevolt()
  const { client, problems } = clientOf(fake)
  await client.loginBot('wrong')
  await expect.poll(() => problems[0]).toMatchObject({ type: 'Error', data: { type: 'InvalidSession' } })
})
