import Bot from 'keybase-bot'
import { expect, it } from 'vitest'
import { BOT, DIRECT, FakeKeybase, PAPER_KEY } from '../../support/platforms/keybase.ts'

type Received = Parameters<Parameters<Bot['chat']['watchAllChannelsForNewMessages']>[0]>[0]

it('works with the bot of Keybase', async () => {
  await using platform = await FakeKeybase.start()
  const bot = new Bot()
  await bot.init(BOT, PAPER_KEY, { keybaseBinaryLocation: platform.program })
  expect(bot.myInfo()?.username).toBe(BOT)
  const received = Promise.withResolvers<Received>()
  const listening = bot.chat.watchAllChannelsForNewMessages(received.resolve)
  await platform.waitForListener()
  await platform.deliver({ text: 'hello', mentionsBot: true })
  const message = await received.promise
  expect(message).toMatchObject({
    conversationId: DIRECT,
    sender: { username: 'ada' },
    content: { type: 'text', text: { body: `@${BOT} hello` } },
    atMentionUsernames: [BOT],
  })
  const { id = 0 } = await bot.chat.send(DIRECT, { body: 'an answer' }, { replyTo: message.id })
  await bot.chat.react(DIRECT, message.id, ':+1:')
  const replyTo = `${DIRECT}:${message.id}`
  expect(platform.sent).toMatchObject([{ id: `${DIRECT}:${id}`, text: 'an answer', replyTo }])
  expect(platform.reactions).toEqual([{ messageId: replyTo, emoji: '👍' }])
  const { messages } = await bot.chat.read(DIRECT, { peek: true, pagination: { num: 10 } as never })
  expect(messages.map((one) => one.id)).toEqual([message.id])
  await bot.chat.delete(DIRECT, id)
  expect(platform.sent).toEqual([])
  await bot.deinit()
  await listening
})
