import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { InboundMessage } from 'svc/channels'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'
import { ChatPlatform } from './chat-platform.ts'

// Every limit of messages is set low, and exceeded.

let test: PluginTest
let platform: ChatPlatform
beforeAll(async () => {
  platform = new ChatPlatform()
  platform.install()
  test = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'files', 'channels'],
    config: {
      channels: {
        test_chat: {
          agent_name: 'helper',
          allowed_users: ['ada', 'bob', 'cyd', 'dee', 'eli', 'fay'],
          rate_limit_per_user: 4,
          rate_limit_per_minute: 19,
        },
      },
      plugins: {
        channels: {
          max_attempts: 1,
          max_attachments: 2,
          attachment_max_bytes: 8,
          max_conversations: 1,
          max_concurrent_sends: 1,
          notices_per_minute: 2,
          message_chars: 100,
        },
      },
    },
  })
  await test.spawn('helper')
})
afterAll(() => test[Symbol.asyncDispose]())

const api = async (method: string, path: string): Promise<Json> =>
  (await test.request<Json>(method, `/api/channels/test_chat/${path}`)).body
/** What a person writes in a direct chat, which has their name. */
const write = (who: string, text: string, more: Partial<InboundMessage> = {}): Promise<void> =>
  platform.write(text, { chat: { id: who, kind: 'direct' }, sender: { id: who, name: who }, ...more })
const shownTo = (who: string): readonly string[] =>
  platform.shown.filter(({ chat }) => chat === who).map(({ text }) => text)
/** How many messages to them are in the outbox, sent or not. */
async function countRows(who: string): Promise<number> {
  const ids = new Set<string>()
  for (const state of ['pending', 'sent'])
    for (const { id, chat_id: chat } of (await api('GET', `outbox?state=${state}`)).messages)
      if (chat === who) ids.add(id)
  return ids.size
}
const file = (name: string) => ({ kind: 'file' as const, name, mime: 'text/plain', reference: { name } })
/** The next answer of the model waits until the returned function is called. */
function holdModel(): { readonly asked: Promise<void>; readonly release: () => void } {
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const { complete } = test.model
  vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* (request, signal) {
    asked.resolve()
    await released.promise
    yield* complete.call(test.model, request, signal)
  })
  return { asked: asked.promise, release: released.resolve }
}
const lastAsked = (): string => JSON.stringify(test.model.requests.at(-1)?.turns.at(-1))

it('a message that cannot be worked on is put aside after max_attempts with the reason, and answered when asked for', async () => {
  const read = vi.spyOn(platform.files, 'get').mockImplementationOnce(() => {
    throw new TypeError('the file server is on fire')
  })
  await write('ada', 'read this', { attachments: [file('note')] })
  expect(await platform.texts(1, 'ada')).toEqual([expect.stringContaining('was put aside')])
  read.mockRestore()
  const { messages } = await api('GET', 'inbox')
  expect(messages).toMatchObject([{ state: 'parked', reason: 'the file server is on fire', attempts: 1 }])
  expect(await auditDetails(test, 'channel_changed')).toContainEqual(
    expect.stringContaining('is parked after 1 attempts: the file server is on fire'),
  )
  platform.files.set('note', Buffer.from('short'))
  test.model.answer('read')
  await api('POST', `inbox/${messages[0].id}/retry`)
  expect((await platform.texts(2, 'ada'))[1]).toBe('read')
  expect((await api('GET', 'inbox')).messages).toEqual([])
})

it('files beyond max_attachments and attachment_max_bytes are named, and not read', async () => {
  for (const [name, text] of [
    ['fits', '12345678'],
    ['large', '123456789'],
    ['third', '1'],
  ] as const)
    platform.files.set(name, Buffer.from(text))
  const read = vi.spyOn(platform.files, 'get')
  await write('ada', 'look', { attachments: ['fits', 'large', 'third'].map(file) })
  expect((await platform.texts(4, 'ada'))[2]).toBe(
    'Files that could not be read:\n\n- large: it is larger than 8 bytes\n- 1 more: at most 2 files of a message are read',
  )
  expect(lastAsked()).toMatch(/Attached file: uploads\/\S+-fits, \S+, 8 bytes/)
  expect(lastAsked()).toContain('[Attached file large: not read, it is larger than 8 bytes]')
  expect(lastAsked()).toContain('[1 more attached files were not read: too many]')
  expect(read.mock.calls.flat()).toEqual(['fits', 'large'])
  read.mockRestore()
})

it('an edit replaces a message that waits, and not one that is being answered', async () => {
  const { asked, release } = holdModel()
  test.model.answer('one', 'two')
  await write('bob', 'first', { id: 'b-1' })
  await asked
  await write('bob', 'second', { id: 'b-2' })
  await write('bob', 'second, corrected', { id: 'b-2', isEdit: true })
  await write('bob', 'first, too late', { id: 'b-1', isEdit: true })
  release()
  expect(await platform.texts(2, 'bob')).toEqual(['one', 'two'])
  expect(lastAsked()).toContain('second, corrected')
  expect(JSON.stringify(test.model.requests)).not.toContain('too late')
})

it('max_conversations are answered side by side, and commands beside them', async () => {
  const before = test.model.requests.length
  const { asked, release } = holdModel()
  await write('cyd', 'one')
  await asked
  await write('dee', 'two')
  await write('cyd', '/status')
  expect(await platform.texts(1, 'cyd')).toEqual([expect.stringContaining('Agent: helper')])
  // Long enough for a turn that does not wait to reach the model.
  for (let count = 0; count < 20; count++) await api('GET', 'inbox')
  expect(test.model.requests).toHaveLength(before)
  release()
  await Promise.all([platform.texts(2, 'cyd'), platform.texts(1, 'dee')])
})

it('max_concurrent_sends are on their way side by side', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  platform.faults.push(() => held)
  const before = platform.attempts.length
  await write('cyd', 'x'.repeat(101))
  await write('dee', 'x'.repeat(101))
  expect((await api('GET', '')).status).toMatchObject({ outbox: 2 })
  expect(platform.attempts).toHaveLength(before + 1)
  release()
  await platform.texts(2, 'dee')
})

it('what cannot be sent is a dead letter after max_attempts, and is sent again when asked for, once', async () => {
  platform.faults.push(() => {
    throw new TypeError('the adapter is broken')
  })
  const failed = shownTo('dee').length
  await write('dee', '/agents')
  await write('dee', '/help')
  await platform.texts(failed + 1, 'dee')
  const { messages } = await api('GET', 'outbox')
  expect(messages).toMatchObject([{ state: 'dead', error: 'the adapter is broken', attempts: 1 }])
  await api('POST', `outbox/${messages[0].id}/retry`)
  await platform.texts(failed + 2, 'dee')
  expect((await test.request('POST', `/api/channels/test_chat/outbox/${messages[0].id}/retry`)).status).toBe(409)
  expect(platform.attempts.filter(({ id }) => id === messages[0].id)).toHaveLength(2)
})

it('notices_per_minute tell strangers that they are not known', async () => {
  for (const stranger of ['s1', 's2', 's3']) await write(stranger, 'hello')
  await Promise.all(['s1', 's2'].map((stranger) => platform.texts(1, stranger)))
  expect(await countRows('s3')).toBe(0)
})

it('rate_limit_per_user and rate_limit_per_minute are told once each, and what is beyond costs nothing', async () => {
  for (let count = 0; count < 6; count++) await write('eli', '/agents')
  await platform.texts(5, 'eli')
  // The messages above, and four of eli: two are left of rate_limit_per_minute.
  for (let count = 0; count < 5; count++) await write('fay', '/agents')
  await platform.texts(3, 'fay')
  expect(await Promise.all(['eli', 'fay'].map(countRows))).toEqual([5, 3])
  const told = (who: string) => shownTo(who).filter((text) => text.startsWith('Too many'))
  expect(told('eli')).toEqual([expect.stringContaining('at most 4 a minute')])
  expect(told('fay')).toEqual([expect.stringContaining('at the moment')])
})
