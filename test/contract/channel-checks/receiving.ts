import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { bytesOf, DOCUMENT, PICTURE, within } from './check.ts'
import type { ChannelCheck } from './check.ts'

export const receiving: readonly ChannelCheck[] = [
  {
    id: 'receive-direct',
    title: 'a direct message arrives with its ids, its text and its time',
    async run(stage) {
      await stage.open()
      const id = await stage.platform.deliver({ text: 'Grüße 日本 😀 <b>&' })
      const [message] = await stage.test.waitForReceived(1)
      ok(message)
      strictEqual(message.text, 'Grüße 日本 😀 <b>&')
      strictEqual(message.chat.kind, stage.platform.hasOnlyGroups ? 'group' : 'direct')
      strictEqual(message.chat.id, stage.platform.chats.direct)
      strictEqual(message.sender.id, stage.platform.person)
      ok(message.sender.name !== '' && message.id !== '')
      if (id !== '') strictEqual(message.id, id)
      strictEqual(new Date(message.sentAt).toISOString(), message.sentAt)
      ok(JSON.stringify(message.replyContext ?? {}).length < 4096)
    },
  },
  {
    id: 'receive-order',
    title: 'messages arrive once each and in order',
    async run(stage) {
      await stage.open()
      const texts = Array.from({ length: 10 }, (_, index) => `message ${index}`)
      for (const text of texts) await stage.platform.deliver({ text })
      const received = await stage.test.waitForReceived(texts.length)
      deepStrictEqual(
        received.map(({ text }) => text),
        texts,
      )
      strictEqual(new Set(received.map(({ id }) => id)).size, texts.length)
    },
  },
  {
    id: 'mentions',
    title: 'a mention in a group is told apart, and is not a part of the text',
    applies: ({ platform }) => platform.chats.group !== undefined,
    async run(stage) {
      await stage.open()
      await stage.platform.deliver({ text: 'to nobody', isGroup: true })
      await stage.platform.deliver({ text: 'to the bot', isGroup: true, mentionsBot: true })
      const received = await stage.test.waitForReceived(2)
      deepStrictEqual(
        received.map(({ text, mentionsBot, chat }) => [text, mentionsBot, chat.kind, chat.id]),
        [
          ['to nobody', false, 'group', stage.platform.chats.group],
          ['to the bot', true, 'group', stage.platform.chats.group],
        ],
      )
    },
  },
  {
    id: 'own-messages',
    title: 'what the bot wrote itself is not received',
    async run(stage) {
      await stage.open()
      await stage.platform.deliver({ text: 'its own', isOwn: true })
      await stage.platform.deliver({ text: 'of a person' })
      const [message] = await stage.test.waitForReceived(1)
      strictEqual(message?.text, 'of a person')
    },
  },
  {
    id: 'duplicates',
    title: 'a message that is delivered again has the same id',
    applies: ({ platform }) => platform.redelivers === true,
    async run(stage) {
      await stage.open()
      const id = await stage.platform.deliver({ text: 'once' })
      await stage.platform.deliver({ text: 'once', redeliveryOf: id })
      await stage.platform.deliver({ text: 'last' })
      const received = await stage.test.waitForReceived(2)
      deepStrictEqual(
        received.map(({ text }) => text),
        ['once', 'last'],
      )
    },
  },
  {
    id: 'not-stored',
    title: 'a message that could not be stored is not acknowledged, and comes again',
    applies: ({ platform }) => platform.redelivers === true,
    async run(stage) {
      const connection = await stage.open()
      stage.test.isRefusing = true
      const id = await stage.platform.deliver({ text: 'not yet' }).catch(() => '')
      if (stage.platform.disconnect) strictEqual((await within('the end', connection.closed)).retry, 'later')
      stage.test.isRefusing = false
      await stage.reopen()
      // A webhook is called again by the platform; a poll or a stream finds the message.
      if (id === '') await stage.platform.deliver({ text: 'not yet' })
      const [message] = await stage.test.waitForReceived(1)
      strictEqual(message?.text, 'not yet')
    },
  },
  {
    id: 'threads',
    title: 'threads and replies keep their places in both directions',
    applies: ({ adapter, platform }) => adapter.capabilities.threads === true && platform.chats.thread !== undefined,
    async run(stage) {
      const { chats } = stage.platform
      await stage.open()
      const { thread: threadId = '', group = chats.direct } = chats
      await stage.platform.deliver({ text: 'in a thread', threadId, isGroup: chats.group !== undefined })
      const [message] = await stage.test.waitForReceived(1)
      strictEqual(message?.threadId, threadId)
      const { replyContext } = message
      const to = { chatId: message.chat.id, threadId, ...(replyContext && { replyContext }) }
      await stage.connection.send(stage.message('there too', { to }))
      const [sent] = await stage.platform.waitForSent(1)
      strictEqual(sent?.threadId, threadId)
      strictEqual(sent?.chatId, group)
    },
  },
  {
    id: 'replies',
    title: 'a reply names the message it answers, in both directions',
    applies: ({ adapter, platform }) => adapter.capabilities.replies === true && !platform.lacks?.has('replies'),
    async run(stage) {
      await stage.open()
      const id = await stage.platform.deliver({ text: 'a question' })
      const [message] = await stage.test.waitForReceived(1)
      const to = {
        chatId: message?.chat.id ?? '',
        ...(message?.replyContext && { replyContext: message.replyContext }),
      }
      const { id: answer } = await stage.connection.send(stage.message('an answer', { to, replyTo: id }))
      const [sent] = await stage.platform.waitForSent(1)
      strictEqual(sent?.replyTo, id)
      await stage.platform.deliver({ text: 'about that', replyTo: answer })
      const [, next] = await stage.test.waitForReceived(2)
      strictEqual(next?.replyTo, answer)
    },
  },
  {
    id: 'receive-edits',
    title: 'an edited message comes with the id of the first version',
    applies: ({ adapter, platform: { lacks } }) =>
      adapter.capabilities.edit !== undefined && !lacks?.has('edit') && !lacks?.has('edits of others'),
    async run(stage) {
      await stage.open()
      const id = await stage.platform.deliver({ text: 'old' })
      await stage.test.waitForReceived(1)
      const received: { id: string; text: string; isEdit?: boolean }[] = []
      const { link } = stage.test
      Object.assign(link, { receive: async (message: (typeof received)[number]) => void received.push(message) })
      await stage.platform.deliver({ text: 'new', editOf: id })
      await stage.platform.deliver({ text: 'after' })
      while (received.length < 2) await new Promise((resolve) => setImmediate(resolve))
      deepStrictEqual([received[0]?.id, received[0]?.text, received[0]?.isEdit], [id, 'new', true])
    },
  },
  {
    id: 'receive-files',
    title: 'files of others are announced with a reference that can be stored, and read',
    applies: ({ adapter, platform }) =>
      adapter.capabilities.attachments?.inbound === true && !platform.lacks?.has('attachments'),
    async run(stage) {
      const { fileKinds } = stage.platform
      const files = [PICTURE, DOCUMENT].filter(({ kind }) => fileKinds?.has(kind) ?? true)
      await stage.open()
      for (const file of files) await stage.platform.deliver({ text: 'with a file', files: [file] })
      const received = await stage.test.waitForReceived(files.length)
      for (const [index, file] of files.entries()) {
        const attachment = received[index]?.attachments[0]
        ok(attachment, 'there is no attachment')
        strictEqual(attachment.kind, file.kind)
        const stored = JSON.stringify(attachment.reference)
        ok(stored.length <= 4096)
        for (const secret of stage.platform.secrets) ok(!stored.includes(secret), 'the reference has a secret')
        const content = await stage.connection.readAttachment?.(JSON.parse(stored), AbortSignal.timeout(5000))
        ok(content, 'there is no readAttachment')
        ok(file.bytes.length > 0 && (await bytesOf(content)).equals(file.bytes), 'the content is another')
      }
    },
  },
  {
    id: 'forgeries',
    title: 'a request that is not signed by the platform is refused and leaves nothing',
    applies: ({ platform }) => (platform.forgeries?.() ?? []).length > 0,
    async run(stage) {
      await stage.open()
      for (const request of stage.platform.forgeries?.() ?? []) {
        const { status } = await stage.receiveWebhook(request)
        strictEqual(status, 401, JSON.stringify({ ...request, body: Buffer.from(request.body).toString() }))
      }
      await stage.platform.deliver({ text: 'a real one' })
      const [message] = await stage.test.waitForReceived(1)
      strictEqual(message?.text, 'a real one')
    },
  },
]
