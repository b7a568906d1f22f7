import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict'
import { describe, it } from 'vitest'
import { UpstreamFailure } from 'svc/sdk'
import type { ChannelAdapter, Dialect } from 'svc/channels'
import type { FakePlatform, PlatformFault, PlatformFile } from '../support/platforms/platform.ts'
import { attachmentOf, ChannelStage } from './channel-stage.ts'

/** One rule that every adapter keeps. */
export interface ChannelCheck {
  /** Never changes, so that a broken adapter can name the rule that it breaks. */
  readonly id: string
  readonly title: string
  /** Whether the rule holds for this adapter and platform; always when absent. */
  applies?(stage: ChannelStage): boolean
  /** Refusals of the platform are a part of it. */
  readonly expectsViolations?: true
  run(stage: ChannelStage): Promise<void>
}

const MAX_STOP_MS = 2000
/** A text with markup, and signs that mean something, as the channel host renders them. */
const SAMPLES: Readonly<Record<Dialect, string>> = {
  plain: '1 < 2 & 3 "quoted" *as it is*',
  markdown: '**bold** `code` 1 < 2',
  discord: '**bold** `code` 1 < 2',
  'telegram-html': '<b>bold</b> <code>a &lt; b</code> &amp; <a href="https://example.com/?a=1&amp;b=2">link</a>',
  'matrix-html': '<strong>bold</strong> <code>a &lt; b</code> &amp;',
  slack: '*bold* `code` 1 &lt; 2 &amp; 3',
  whatsapp: '*bold* _italic_ ```code``` 1 < 2',
  xmpp: '*bold* _italic_ `code` 1 < 2 & 3',
  irc: 'bold 1 < 2 & 3',
  'email-html': '<p><strong>bold</strong> 1 &lt; 2</p>',
}
const PICTURE: PlatformFile = {
  kind: 'image',
  name: 'dot.png',
  mime: 'image/png',
  bytes: Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
}
const DOCUMENT: PlatformFile = {
  kind: 'file',
  name: 'notes ä.txt',
  mime: 'text/plain',
  bytes: Buffer.from('äöü\n'),
}

const hasFault =
  (kind: PlatformFault['kind']) =>
  ({ platform }: ChannelStage): boolean =>
    platform.faults.has(kind)

function upstream(error: unknown, expected: { reason?: string; retry: 'later' | 'never' }): UpstreamFailure {
  ok(error instanceof UpstreamFailure, `not an UpstreamFailure: ${String(error)}`)
  strictEqual(error.retry, expected.retry, error.message)
  if (expected.reason !== undefined) strictEqual(error.reason, expected.reason, error.message)
  return error
}

async function within<T>(what: string, promise: PromiseLike<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${what} took longer than ${MAX_STOP_MS} ms`)), MAX_STOP_MS)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

async function bytesOf(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const receiving: readonly ChannelCheck[] = [
  {
    id: 'receive-direct',
    title: 'a direct message arrives with its ids, its text and its time',
    async run(stage) {
      await stage.open()
      const id = await stage.platform.deliver({ text: 'Grüße 日本 😀 <b>&' })
      const [message] = await stage.test.waitForReceived(1)
      ok(message)
      strictEqual(message.text, 'Grüße 日本 😀 <b>&')
      strictEqual(message.chat.kind, 'direct')
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
    applies: ({ adapter }) => adapter.capabilities.replies === true,
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
    applies: ({ adapter }) => adapter.capabilities.edit !== undefined,
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
    applies: ({ adapter }) => adapter.capabilities.attachments?.inbound === true,
    async run(stage) {
      await stage.open()
      for (const file of [PICTURE, DOCUMENT]) await stage.platform.deliver({ text: 'with a file', files: [file] })
      const received = await stage.test.waitForReceived(2)
      for (const [index, file] of [PICTURE, DOCUMENT].entries()) {
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

const sending: readonly ChannelCheck[] = [
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
    applies: ({ adapter }) => adapter.capabilities.edit !== undefined,
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
    applies: ({ adapter }) => adapter.capabilities.typing !== undefined,
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
    applies: ({ adapter }) => adapter.capabilities.attachments?.outbound === true,
    async run(stage) {
      await stage.open()
      await stage.connection.send(stage.message('a picture', { attachments: [attachmentOf(PICTURE)] }))
      await stage.connection.send(stage.message('', { attachments: [DOCUMENT, PICTURE].map(attachmentOf) }))
      const files = stage.platform.sent.flatMap((message) => message.files)
      deepStrictEqual(
        files.map(({ name, bytes }) => [name, Buffer.from(bytes).toString('base64')]),
        [PICTURE, DOCUMENT, PICTURE].map(({ name, bytes }) => [name, Buffer.from(bytes).toString('base64')]),
      )
      ok(stage.platform.sent.some(({ text }) => text.includes('a picture')))
    },
  },
]

/** A fault of the platform, and how the adapter has to report it. */
const failing = (
  id: string,
  title: string,
  fault: PlatformFault,
  expected: { reason?: string; retry: 'later' | 'never'; retryAfterSecs?: number },
): ChannelCheck => ({
  id,
  title,
  applies: hasFault(fault.kind),
  async run(stage) {
    const connection = await stage.open()
    const message = stage.message('hello')
    stage.platform.fail(fault)
    const error = upstream(await stage.failureOf(() => connection.send(message)), expected)
    if (expected.retryAfterSecs !== undefined)
      ok(Math.abs((error.retryAfterSecs ?? NaN) - expected.retryAfterSecs) <= 1, `${error.retryAfterSecs}`)
    strictEqual(stage.platform.sent.length, 0, 'the adapter tried again by itself')
    await connection.send(message)
    await stage.platform.waitForSent(1)
  },
})

const faults: readonly ChannelCheck[] = [
  failing(
    'rate-limit',
    '429 with a pause is rate_limit with this pause',
    { kind: 'rate_limit', retryAfterSecs: 7 },
    { reason: 'rate_limit', retry: 'later', retryAfterSecs: 7 },
  ),
  failing(
    'rate-limit-without-hint',
    '429 without a pause is rate_limit',
    { kind: 'rate_limit' },
    { reason: 'rate_limit', retry: 'later' },
  ),
  failing('server-error', 'an error of the server may pass', { kind: 'server_error' }, { retry: 'later' }),
  failing('permanent', 'a message that is never taken is not tried again', { kind: 'permanent' }, { retry: 'never' }),
  failing(
    'revoked',
    'revoked credentials are auth',
    { kind: 'auth' },
    {
      reason: 'auth',
      retry: 'never',
    },
  ),
  {
    id: 'reset',
    title: 'a connection that is reset may pass, and nothing was sent',
    applies: hasFault('reset'),
    async run(stage) {
      await stage.open()
      const message = stage.message('hello')
      stage.platform.fail({ kind: 'reset' })
      upstream(await stage.failureOf(() => stage.connection.send(message)), { retry: 'later' })
      strictEqual(stage.platform.sent.length, 0)
      if (stage.platform.disconnect) await stage.reopen()
      await stage.connection.send(message)
      await stage.platform.waitForSent(1)
    },
  },
  {
    id: 'lost-answer',
    title: 'a message whose answer is lost is sent again without a second one, where the platform allows it',
    applies: (stage) => hasFault('lost_answer')(stage),
    async run(stage) {
      await stage.open()
      const message = stage.message('hello')
      stage.platform.fail({ kind: 'lost_answer' })
      upstream(await stage.failureOf(() => stage.connection.send(message)), { retry: 'later' })
      if (stage.platform.disconnect) await stage.reopen()
      await stage.connection.send(message)
      strictEqual(stage.platform.sent.length, stage.adapter.capabilities.idempotentSend ? 1 : 2)
    },
  },
]

const connecting: readonly ChannelCheck[] = [
  {
    id: 'probe',
    title: 'a probe tells whose credentials these are, and shows nothing',
    async run(stage) {
      const { account } = await stage.adapter.probe(stage.test.link)
      ok(account !== '')
      for (const secret of stage.platform.secrets) ok(!account.includes(secret))
      strictEqual(stage.platform.sent.length, 0)
    },
  },
  {
    id: 'wrong-token',
    title: 'wrong credentials are auth, when it opens and when it is probed',
    applies: ({ platform }) => platform.wrongConfig !== undefined,
    expectsViolations: true,
    async run(stage) {
      const { wrongConfig } = stage.platform
      await using wrong = new ChannelStage(stage.adapter, stage.platform, wrongConfig)
      for (const run of [() => wrong.open(), () => wrong.adapter.probe(wrong.test.link)])
        upstream(await wrong.failureOf(run), { reason: 'auth', retry: 'never' })
      stage.errors.push(...wrong.errors)
    },
  },
  {
    id: 'lost-link',
    title: 'a lost connection is reported, and the next one misses nothing',
    applies: ({ platform }) => platform.disconnect !== undefined,
    async run(stage) {
      const connection = await stage.open()
      await stage.platform.deliver({ text: 'before' })
      await stage.test.waitForReceived(1)
      await stage.platform.disconnect?.()
      const end = await within('the end of the connection', connection.closed)
      strictEqual(end.retry, 'later')
      ok(end.reason !== '')
      const { redelivers } = stage.platform
      if (redelivers) await stage.platform.deliver({ text: 'while it was away' })
      await stage.reopen()
      await stage.platform.deliver({ text: 'after' })
      const texts = redelivers ? ['before', 'while it was away', 'after'] : ['before', 'after']
      const received = await stage.test.waitForReceived(texts.length)
      deepStrictEqual(
        received.map(({ text }) => text),
        texts,
      )
    },
  },
  {
    id: 'abort-open',
    title: 'opening ends when it is aborted',
    async run(stage) {
      const opening = stage.adapter.open(stage.test.link)
      stage.test.abort()
      const outcome = await within('the aborted opening', Promise.allSettled([opening]))
      for (const result of outcome)
        if (result.status === 'fulfilled') await within('the end', result.value[Symbol.asyncDispose]())
    },
  },
  {
    id: 'stop',
    title: 'a connection stops within two seconds, and receives nothing more',
    async run(stage) {
      const connection = await stage.open()
      await stage.platform.deliver({ text: 'before' })
      await stage.test.waitForReceived(1)
      await within('the end', connection[Symbol.asyncDispose]())
      await within('the report of the end', connection.closed)
      strictEqual(stage.test.received.length, 1)
    },
  },
  {
    id: 'abort',
    title: 'a connection ends when its link does',
    async run(stage) {
      const connection = await stage.open()
      stage.test.abort()
      await within('the end', connection.closed)
      await within('the disposal', connection[Symbol.asyncDispose]())
    },
  },
]

/** What every adapter does, whatever it talks to. */
export const checks: readonly ChannelCheck[] = [...receiving, ...sending, ...faults, ...connecting]

/** Runs one check, and then what has to hold after every one. */
export async function runCheck(check: ChannelCheck, stage: ChannelStage): Promise<void> {
  await check.run(stage)
  if (!check.expectsViolations)
    deepStrictEqual(stage.platform.violations, [], 'the platform refused what the adapter sent')
  const output = [...stage.test.logged, ...stage.errors.map(describeError)].join('\n')
  for (const secret of stage.platform.secrets) ok(!output.includes(secret), `a secret was put out: ${output}`)
  if (check.id === 'wrong-token') match(output, /\S/)
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(error) ?? ''
  return `${error.message} ${error.stack} ${JSON.stringify(error)} ${error.cause === undefined ? '' : describeError(error.cause)}`
}

/** A channel under the suite. */
export interface ChannelRow {
  readonly name: string
  readonly load: () => Promise<{ readonly default: ChannelAdapter }>
  readonly start: () => Promise<FakePlatform>
}

/** Registers every check as a test. Those that do not apply to the adapter are skipped. */
export function testChannel({ name, load, start }: ChannelRow): void {
  describe(name, () => {
    for (const check of checks)
      it(`${check.id}: ${check.title}`, async (context) => {
        await using stage = new ChannelStage((await load()).default, await start())
        if (check.applies?.(stage) === false) return context.skip('does not apply')
        await runCheck(check, stage)
      })
  })
}
