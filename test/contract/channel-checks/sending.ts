import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import type { PlatformFile } from '../../support/platforms/platform.ts'
import { attachmentOf } from '../channel-stage.ts'
import { DOCUMENT, PICTURE, SAMPLES } from './check.ts'
import type { ChannelCheck } from './check.ts'

/** What calls everybody on a platform, as its documents say. */
const MASS_MENTIONS: Readonly<Record<string, readonly string[]>> = {
  discourse: ['@all', '@here'],
  feishu: ['<at id=all>'],
  google_chat: ['<users/all>'],
  guilded: ['@everyone', '@here'],
  keybase: ['@here', '@channel', '@everyone'],
  mattermost: ['@all', '@channel', '@here'],
  nextcloud: ['@all', '@"all"'],
  pumble: ['<<!channel>>', '<<!here>>'],
  revolt: ['@everyone', '@online'],
  rocketchat: ['@all', '@here'],
  slack: ['<!channel>', '<!here>', '<!everyone>', '<!subteam^S1>'],
  twist: ['twist-group-mention:'],
  webex: ['<@all>', '<@groupMention:all>'],
  wecom: ['<@all>'],
  zulip: ['@**all**', '@**everyone**', '@**channel**'],
}

export const sending: readonly ChannelCheck[] = [
  {
    id: 'send',
    title: 'a message in the dialect of the adapter is shown in its chat, once',
    async run(stage) {
      const text = SAMPLES[stage.adapter.capabilities.dialect]
      await stage.open()
      const { id } = await stage.connection.send(stage.message(text))
      const [sent] = await stage.platform.waitForSent(1)
      strictEqual(sent?.text, text)
      strictEqual(sent?.chatId, stage.platform.chats.direct)
      if (id !== '') strictEqual(id, sent?.id)
      strictEqual(stage.platform.sent.length, 1)
    },
  },
  {
    id: 'send-order',
    title: 'messages that are sent one after another are shown in this order, with different ids',
    async run(stage) {
      await stage.open()
      const ids: string[] = []
      for (let index = 0; index < 5; index++) ids.push((await stage.connection.send(stage.message(`${index}`))).id)
      const sent = await stage.platform.waitForSent(5)
      deepStrictEqual(
        sent.map(({ text }) => text),
        ['0', '1', '2', '3', '4'],
      )
      const known = ids.filter((id) => id !== '')
      strictEqual(new Set(known).size, known.length)
    },
  },
  {
    id: 'long-text',
    title: 'a text of the greatest length is one message',
    async run(stage) {
      const { maxLength, lengthUnit } = stage.adapter.capabilities
      const length = Math.min(maxLength, 100_000)
      const text = lengthUnit === 'bytes' ? 'ä'.repeat(Math.floor(length / 2)) : 'x'.repeat(length)
      await stage.open()
      await stage.connection.send(stage.message(text))
      const sent = await stage.platform.waitForSent(1)
      deepStrictEqual(
        sent.map((message) => message.text),
        [text],
      )
    },
  },
  {
    id: 'mass-mentions',
    title: 'nobody is called by a text that has every form of calling everybody, as it is in every format',
    async run(stage) {
      const { channel } = stage.platform
      const forms = Object.values(MASS_MENTIONS).flat().join(' ')
      const isHtml = stage.adapter.capabilities.dialect.endsWith('-html')
      const text = isHtml ? forms.replaceAll('<', '&lt;') : forms
      await stage.open()
      const message = stage.message(text)
      const sent = await stage.connection.send(message)
      if (stage.adapter.capabilities.edit && !stage.platform.lacks?.has('edit'))
        await stage.connection.edit?.(sent, { ...message, text: `${text} edited` })
      await stage.platform.waitForSent(1)
      const shown = stage.platform.sent.map((one) => one.text).join('\n')
      deepStrictEqual(
        (MASS_MENTIONS[channel] ?? []).filter((form) => shown.includes(form)),
        [],
      )
    },
  },
  {
    id: 'send-again',
    title: 'a message that is sent again under its id is shown once',
    applies: ({ adapter }) => adapter.capabilities.idempotentSend,
    async run(stage) {
      await stage.open()
      const message = stage.message('once')
      const first = await stage.connection.send(message)
      const second = await stage.connection.send(message)
      strictEqual(first.id, second.id)
      await stage.connection.send(stage.message('last'))
      deepStrictEqual(
        (await stage.platform.waitForSent(2)).map(({ text }) => text),
        ['once', 'last'],
      )
    },
  },
  {
    id: 'edits',
    title: 'an edit replaces the text, and one that changes nothing is a success',
    applies: ({ adapter, platform }) => adapter.capabilities.edit !== undefined && !platform.lacks?.has('edit'),
    async run(stage) {
      const connection = await stage.open()
      const message = stage.message('first')
      const sent = await connection.send(message)
      await connection.edit?.(sent, { ...message, text: 'second', plainText: 'second' })
      await connection.edit?.(sent, { ...message, text: 'second', plainText: 'second' })
      await stage.connection.send(stage.message('last'))
      const shown = await stage.platform.waitForSent(2)
      deepStrictEqual(
        shown.map(({ text }) => text),
        ['second', 'last'],
      )
    },
  },
  {
    id: 'removes',
    title: 'a removed message is gone, and removing it again is a success',
    applies: ({ platform }) => platform.removes === true,
    async run(stage) {
      const connection = await stage.open()
      const message = stage.message('gone')
      await connection.send(stage.message('first'))
      const sent = await connection.send(message)
      await connection.delete?.(sent, message.to)
      await connection.delete?.(sent, message.to)
      await connection.send(stage.message('last'))
      deepStrictEqual(
        (await stage.platform.waitForSent(2)).map(({ text }) => text),
        ['first', 'last'],
      )
    },
  },
  {
    id: 'buttons',
    title: 'buttons are shown, and a press arrives as a message with the value',
    applies: ({ adapter }) => adapter.capabilities.buttons === true,
    async run(stage) {
      await stage.open()
      const buttons = [
        { label: 'Allow', value: '/approve 1' },
        { label: 'Deny', value: '/deny 1' },
      ]
      await stage.connection.send(stage.message('May I?', { buttons }))
      const [sent] = await stage.platform.waitForSent(1)
      deepStrictEqual(sent?.buttons, buttons)
      await stage.platform.deliver({ text: '', button: '/approve 1' })
      const [message] = await stage.test.waitForReceived(1)
      strictEqual(message?.text, '/approve 1')
      strictEqual(message?.sender.id, stage.platform.person)
    },
  },
  {
    id: 'typing',
    title: 'the typing indicator is shown in the chat',
    applies: ({ adapter, platform }) => adapter.capabilities.typing !== undefined && !platform.hidesTyping,
    async run(stage) {
      await stage.open()
      await stage.platform.deliver({ text: 'a question' })
      const [message] = await stage.test.waitForReceived(1)
      const context = message?.replyContext && { replyContext: message.replyContext }
      await stage.connection.typing?.({ chatId: stage.platform.chats.direct, ...context })
      // A message on the same line comes after it, where typing is not answered.
      await stage.connection.send(stage.message('done'))
      await stage.platform.waitForSent(1)
      deepStrictEqual(stage.platform.typing, [stage.platform.chats.direct])
    },
  },
  {
    id: 'reactions',
    title: 'a reaction is put on a message',
    applies: ({ adapter }) => adapter.capabilities.reactions === true,
    async run(stage) {
      await stage.open()
      const messageId = await stage.platform.deliver({ text: 'nice' })
      await stage.connection.react?.({ chatId: stage.platform.chats.direct }, messageId, '👍')
      deepStrictEqual(stage.platform.reactions, [{ messageId, emoji: '👍' }])
    },
  },
  {
    id: 'send-files',
    title: 'a text and files are shown with their names and contents',
    applies: ({ adapter, platform }) =>
      adapter.capabilities.attachments?.outbound === true && !platform.lacks?.has('attachments'),
    async run(stage) {
      await stage.open()
      await stage.connection.send(stage.message('a picture', { attachments: [attachmentOf(PICTURE)] }))
      await stage.connection.send(stage.message('', { attachments: [DOCUMENT, PICTURE].map(attachmentOf) }))
      const files = (await stage.platform.waitForSent(2)).flatMap((message) => message.files)
      const isTaken = (file: PlatformFile): boolean => stage.platform.takesFile?.(file) ?? true
      deepStrictEqual(
        files.map(({ name, bytes }) => [name, Buffer.from(bytes).toString('base64')]),
        [PICTURE, DOCUMENT, PICTURE]
          .filter(isTaken)
          .map(({ name, bytes }) => [name, Buffer.from(bytes).toString('base64')]),
      )
      ok(stage.platform.sent.some(({ text }) => text.includes('a picture')))
    },
  },
]
