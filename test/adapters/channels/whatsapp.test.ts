import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/whatsapp/adapter.ts'
import type { Baileys, WebMessage } from '../../../adapters/channels/whatsapp/baileys.ts'
import { findError } from '../../../adapters/channels/whatsapp/errors.ts'
import { openWeb } from '../../../adapters/channels/whatsapp/web.ts'
import { signInWeb } from '../../../adapters/channels/whatsapp/web-sign-in.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { FakeWhatsApp, notificationOf } from '../../support/platforms/whatsapp.ts'

describe('whatsapp by the Cloud API', () => {
  it('answers the handshake of Meta', async () => {
    await using fake = await FakeWhatsApp.start()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    expect(await stage.receiveWebhook(fake.handshake())).toEqual({ status: 200, body: '1158201444' })
  })

  it('takes states, unknown kinds and other numbers with 200, and receives none of them', async () => {
    await using fake = await FakeWhatsApp.start()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    const message = { id: 'wamid.1', from: '16505551234', timestamp: '1', type: 'text', text: { body: 'other' } }
    const failed = { id: 'wamid.2', status: 'failed', errors: [{ code: 131_047, title: 'Re-engagement message' }] }
    const notifications = [
      notificationOf({ messages: [message] }, '999'),
      notificationOf({ statuses: [failed] }),
      notificationOf({ messages: [{ id: 5 }] }),
      { object: 'page', entry: [] },
    ]
    for (const notification of notifications)
      expect((await stage.receiveWebhook(fake.signed(notification))).status).toBe(200)
    expect(stage.test.received).toEqual([])
    expect(stage.test.logged.join()).toContain('131047')
  })

  it('says which messages are of somebody else', async () => {
    await using fake = await FakeWhatsApp.start()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    const base = { from: '16505551234', timestamp: '1', type: 'text', text: { body: 'hi' } }
    const contexts = [undefined, { id: 'wamid.0' }, { forwarded: true }, { frequently_forwarded: true }]
    const messages = contexts.map((context, at) => ({ ...base, id: `wamid.${at + 1}`, ...(context && { context }) }))
    await stage.receiveWebhook(fake.signed(notificationOf({ messages })))
    expect(stage.test.received.map(({ isForwarded }) => isForwarded)).toEqual([undefined, undefined, true, true])
  })

  it.each([
    [131_047, 'invalid_request', 'never'],
    [130_429, 'rate_limit', 'later'],
    [131_056, 'rate_limit', 'later'],
    [190, 'auth', 'never'],
    [131_031, 'auth', 'never'],
  ] as const)('explains error %s', (code, reason, retry) => {
    const answer = { status: 400, ok: false, body: { error: { code, message: 'm' } }, header: () => undefined }
    expect(findError(answer)).toMatchObject({ reason, retry })
  })

  it('shows more than three choices as a list', async () => {
    await using fake = await FakeWhatsApp.start()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    const buttons = ['a', 'b', 'c', 'd'].map((value) => ({ label: `Choice ${value}`, value }))
    await stage.connection.send(stage.message('Which?', { buttons }))
    expect(fake.sent[0]).toMatchObject({ text: 'Which?', buttons })
  })
})

/** A module of the shape of `@whiskeysockets/baileys`, and what it is told. */
function fakeBaileys() {
  const events: EventEmitter[] = []
  const sent: { jid: string; content: unknown; messageId: string | undefined }[] = []
  const module: Baileys = {
    initAuthCreds: () => ({ noiseKey: new Uint8Array([1, 2]) }),
    BufferJSON: {
      replacer: (_, value) =>
        value instanceof Uint8Array ? { type: 'Buffer', data: Buffer.from(value).toString('base64') } : value,
      reviver: (_, value) => {
        const { type, data } = (value ?? {}) as { type?: string; data?: string }
        return type === 'Buffer' ? new Uint8Array(Buffer.from(data ?? '', 'base64')) : value
      },
    },
    proto: { Message: { AppStateSyncKeyData: { fromObject: (value) => value } } },
    downloadMediaMessage: async () => (async function* () {})(),
    makeWASocket: () => {
      const emitter = new EventEmitter()
      events.push(emitter)
      return {
        ev: { on: (event, listener) => void emitter.on(event, listener) },
        user: { id: '15550100:7@s.whatsapp.net' },
        sendMessage: async (jid, content, options) => {
          sent.push({ jid, content, messageId: options?.messageId })
          return { key: { id: options?.messageId ?? 'none' } }
        },
        sendPresenceUpdate: async () => {},
        end: () => {},
      }
    },
  }
  return { module, events, sent, last: () => events.at(-1) as EventEmitter }
}
const me = { id: '15550100:7@s.whatsapp.net', name: 'Svc' }
const text = (id: string, more: object = {}): WebMessage => ({
  key: { id, remoteJid: '16505551234@s.whatsapp.net', fromMe: false, ...more },
  message: { conversation: `text of ${id}` },
  pushName: 'Ada',
  messageTimestamp: 1_800_000_000,
})

describe('whatsapp by a linked phone', () => {
  it('says which package is missing', async () => {
    await using link = new TestLink(adapter, { mode: 'web' })
    await expect(adapter.open(link.link)).rejects.toMatchObject({ code: 'ERR_MODULE_NOT_FOUND' })
  })

  it('links no phone in the other mode', async () => {
    await using fake = await FakeWhatsApp.start()
    await using link = new TestLink(adapter, fake.config)
    // A revoked token of the Cloud API is no reason to scan a code.
    expect(['cloud', 'web'].map((mode) => adapter.usesSignIn?.({ mode }))).toEqual([false, true])
    await expect(adapter.signIn?.(link.link)[Symbol.asyncIterator]().next()).rejects.toThrow('set mode = "web"')
  })

  it('links a phone: pending, scanned, and authenticated after the restart that WhatsApp asks for', async () => {
    await using link = new TestLink(adapter, { mode: 'web' }, () => 0)
    const fake = fakeBaileys()
    const steps = signInWeb(link.link, async () => fake.module)
    const next = async (act: () => void) => {
      const step = steps.next()
      await new Promise((resolve) => setImmediate(resolve))
      act()
      return (await step).value
    }
    const update = (value: object) => fake.last().emit('connection.update', value)
    const pending = { status: 'pending', payload: '2@abc', expiresAt: '1970-01-01T00:00:20.000Z' }
    expect(await next(() => update({ qr: '2@abc' }))).toEqual(pending)
    expect(await next(() => update({ isNewLogin: true }))).toEqual({ status: 'scanned' })
    const last = steps.next()
    fake.last().emit('creds.update', { me })
    update({ connection: 'close', lastDisconnect: { error: { output: { statusCode: 515 } } } })
    while (fake.events.length < 2) await new Promise((resolve) => setImmediate(resolve))
    update({ connection: 'open' })
    expect((await last).value).toEqual({ status: 'authenticated' })
    expect(link.secrets.get('web-credentials')).toContain('"noiseKey":{"type":"Buffer","data":"AQI="}')
    expect((await steps.next()).done).toBe(true)
  })

  it('receives what is new, sends under one id, and ends when the phone unlinks it', async () => {
    await using link = new TestLink(adapter, { mode: 'web' })
    link.secrets.set('web-credentials', JSON.stringify({ me }))
    const fake = fakeBaileys()
    const opening = openWeb(link.link, async () => fake.module)
    while (fake.events.length === 0) await new Promise((resolve) => setImmediate(resolve))
    fake.last().emit('connection.update', { connection: 'open' })
    await using connection = await opening
    fake.last().emit('messages.upsert', { type: 'append', messages: [text('old')] })
    const passedOn = { extendedTextMessage: { text: 'x', contextInfo: { isForwarded: true } } }
    const messages = [text('own', { fromMe: true }), text('new'), { ...text('passed-on'), message: passedOn }]
    fake.last().emit('messages.upsert', { type: 'notify', messages })
    const [message, other] = await link.waitForReceived(2)
    expect([message?.isForwarded, other?.isForwarded]).toEqual([undefined, true])
    expect(message).toMatchObject({ id: 'new', text: 'text of new', sender: { id: '16505551234', name: 'Ada' } })
    const out = { to: { chatId: message?.chat.id ?? '' }, text: 'hi', plainText: 'hi', attachments: [] }
    const first = await connection.send({ id: 'one', ...out })
    expect(await connection.send({ id: 'one', ...out })).toEqual(first)
    expect(first.id).toMatch(/^3EB0[0-9A-F]{18}$/)
    fake.last().emit('connection.update', {
      connection: 'close',
      lastDisconnect: { error: { output: { statusCode: 401 } } },
    })
    expect(await connection.closed).toMatchObject({ retry: 'never' })
    await expect(openWeb(link.link, async () => fake.module)).rejects.toMatchObject({ reason: 'auth' })
  })
})
