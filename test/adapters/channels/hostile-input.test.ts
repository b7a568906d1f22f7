import { xml } from '@xmpp/client'
import { describe, expect, it } from 'vitest'
import * as discord from '../../../adapters/channels/discord/decode.ts'
import * as discordWire from '../../../adapters/channels/discord/wire.ts'
import { htmlToText } from 'svc/channels'
import { decodeMail } from '../../../adapters/channels/email/decode.ts'
import type { EmailConfig } from '../../../adapters/channels/email/config.ts'
import * as irc from '../../../adapters/channels/irc/decode.ts'
import { parseLine } from '../../../adapters/channels/irc/wire.ts'
import * as matrix from '../../../adapters/channels/matrix/decode.ts'
import * as matrixWire from '../../../adapters/channels/matrix/wire.ts'
import * as mattermost from '../../../adapters/channels/mattermost/decode.ts'
import * as mattermostWire from '../../../adapters/channels/mattermost/wire.ts'
import type { MqttConfig } from '../../../adapters/channels/mqtt/config.ts'
import * as mqtt from '../../../adapters/channels/mqtt/decode.ts'
import * as gotify from '../../../adapters/channels/gotify/decode.ts'
import * as gotifyWire from '../../../adapters/channels/gotify/wire.ts'
import { decodeLine } from '../../../adapters/channels/ntfy/decode.ts'
import { Line } from '../../../adapters/channels/ntfy/wire.ts'
import * as slack from '../../../adapters/channels/slack/decode.ts'
import * as slackWire from '../../../adapters/channels/slack/wire.ts'
import * as telegram from '../../../adapters/channels/telegram/decode.ts'
import * as telegramWire from '../../../adapters/channels/telegram/wire.ts'
import * as whatsapp from '../../../adapters/channels/whatsapp/decode.ts'
import { decodeWebMessage } from '../../../adapters/channels/whatsapp/web-decode.ts'
import type { WebMessage } from '../../../adapters/channels/whatsapp/baileys.ts'
import * as whatsappWire from '../../../adapters/channels/whatsapp/wire.ts'
import * as zulip from '../../../adapters/channels/zulip/decode.ts'
import * as zulipWire from '../../../adapters/channels/zulip/wire.ts'
import type { XmppConfig } from '../../../adapters/channels/xmpp/config.ts'
import * as xmpp from '../../../adapters/channels/xmpp/decode.ts'

import { checkMessage, parsed, testHostileInput } from '../../support/hostile-input.ts'
import type { Read } from '../../support/hostile-input.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const user = { id: '222', username: 'ada', global_name: 'Ada', bot: false }
const readers: readonly (readonly [name: string, valid: object, read: Read])[] = [
  [
    'telegram',
    {
      update_id: 1,
      message: {
        message_id: 2,
        date: 1_760_000_000,
        edit_date: 1_760_000_001,
        chat: { id: 3, type: 'private', title: 'x' },
        from: { id: 4, is_bot: false, first_name: 'Ada', username: 'ada' },
        text: 'hello @bot',
        entities: [{ type: 'mention', offset: 6, length: 4, url: 'https://x.test' }],
        reply_to_message: { message_id: 1, from: { id: 9 } },
        photo: [{ file_id: 'f', file_size: 1 }],
        document: { file_id: 'd', file_name: 'n', mime_type: 'text/plain' },
      },
    },
    parsed(telegramWire.Update, (update) => telegram.decodeUpdate(update, { id: 9, username: 'bot' })),
  ],
  [
    'telegram, a button',
    {
      update_id: 1,
      callback_query: {
        id: 'q',
        data: 'yes',
        from: { id: 4, first_name: 'Ada' },
        message: { message_id: 2, date: 1, chat: { id: 3, type: 'group' } },
      },
    },
    parsed(telegramWire.Update, (update) => telegram.decodeUpdate(update, { id: 9, username: 'bot' })),
  ],
  [
    'discord',
    {
      id: '1574063992471552001',
      channel_id: '1',
      guild_id: '2',
      author: user,
      member: { nick: 'A' },
      content: '<@111> hi <a:x:1>',
      timestamp: '2026-11-20T12:00:00Z',
      edited_timestamp: '2026-11-20T12:00:00Z',
      mentions: [{ ...user, id: '111' }],
      attachments: [{ id: '1', filename: 'a', url: 'https://x.test', content_type: 'a/b', size: 1 }],
      sticker_items: [{ name: 's' }],
      message_reference: { message_id: '1', type: 0 },
      referenced_message: { author: { id: '111' } },
    },
    parsed(discordWire.Message, (message) => discord.decodeMessage(message, { botId: '111', ignoreBots: true })),
  ],
  [
    'discord, a button',
    { id: '5', token: 't', type: 3, channel_id: '1', user, data: { custom_id: 'yes' }, message: { id: '1' } },
    parsed(discordWire.Interaction, (press) => discord.decodePress(press, undefined, NOW)),
  ],
  [
    'slack',
    {
      type: 'message',
      channel: 'C1',
      channel_type: 'channel',
      user: 'U1',
      text: '<@UBOT|x> hi <https://x.test|y> <!here>',
      ts: '1760000000.000100',
      thread_ts: '1760000000.000100',
      files: [{ id: 'F1', name: 'n', mimetype: 'text/plain', size: 1, mode: 'hosted' }],
    },
    parsed(slackWire.Event, (event) => slack.decodeEvent(event, { botId: 'UBOT', ignoreBots: true })),
  ],
  [
    'slack, an edit',
    {
      type: 'message',
      subtype: 'message_changed',
      channel: 'C1',
      message: { user: 'U1', text: 'new', ts: '1760000000.000100' },
      previous_message: { text: 'old' },
    },
    parsed(slackWire.Event, (event) => slack.decodeEvent(event, { botId: 'UBOT', ignoreBots: true })),
  ],
  [
    'slack, a button',
    {
      type: 'block_actions',
      user: { id: 'U1', name: 'ada' },
      channel: { id: 'C1' },
      message: { ts: '1760000000.000100' },
      actions: [{ action_id: 'a', action_ts: '1760000000.000100', value: 'yes' }],
    },
    parsed(slackWire.Interaction, slack.decodePress),
  ],
  [
    'whatsapp',
    {
      id: 'wamid.1',
      from: '49123',
      timestamp: '1760000000',
      type: 'text',
      context: { id: 'wamid.0' },
      text: { body: 'hi' },
      image: { id: 'm', mime_type: 'image/png', caption: 'c', filename: 'f' },
      location: { latitude: 1, longitude: 2, name: 'n' },
    },
    parsed(whatsappWire.Message, (message) => whatsapp.decodeMessage(message, [])),
  ],
  [
    'whatsapp web',
    {
      key: { id: 'A', remoteJid: '49123@s.whatsapp.net', fromMe: false, participant: '49123@s.whatsapp.net' },
      pushName: 'Ada',
      messageTimestamp: 1_760_000_000,
      message: {
        extendedTextMessage: { text: 'hi', contextInfo: { mentionedJid: ['1@s.whatsapp.net'], stanzaId: 'B' } },
        imageMessage: { mimetype: 'image/png', fileLength: 1, caption: 'c', mediaKey: 'k', url: 'https://x.test' },
      },
    },
    (raw) => decodeWebMessage(raw as WebMessage, '1@s.whatsapp.net'),
  ],
  [
    'matrix',
    {
      type: 'm.room.message',
      event_id: '$1',
      sender: '@ada:x.test',
      origin_server_ts: 1_760_000_000_000,
      content: {
        msgtype: 'm.image',
        body: '> quote\n\nhi',
        filename: 'n',
        url: 'mxc://x.test/abc',
        info: { mimetype: 'image/png', size: 1 },
        'm.mentions': { user_ids: ['@bot:x.test'] },
        'm.relates_to': {
          rel_type: 'm.replace',
          event_id: '$0',
          is_falling_back: true,
          'm.in_reply_to': { event_id: '$0' },
        },
        'm.new_content': { msgtype: 'm.text', body: 'new' },
      },
    },
    parsed(matrixWire.Event, (event) =>
      matrix.decodeEvent(event, {
        roomId: '!r',
        botId: '@bot:x.test',
        isDirect: false,
        names: new Map([['@bot:x.test', '(?<a>(((']]),
        isOwn: () => false,
      }),
    ),
  ],
  [
    'mattermost',
    {
      id: 'p',
      channel_id: 'c',
      user_id: 'u',
      root_id: 'r',
      message: '@bot hi',
      create_at: 1_760_000_000_000,
      edit_at: 1,
      delete_at: 0,
      type: '',
      props: { from_bot: 'false', override_username: 'x' },
      metadata: { files: [{ id: 'f', name: 'n', mime_type: 'a/b', size: 1 }] },
    },
    parsed(mattermostWire.Post, (post) =>
      mattermost.decodePost(post, { bot: { id: 'b', username: 'bot' }, ignoreBots: true }),
    ),
  ],
  [
    'ntfy',
    {
      id: 'i',
      time: 1_760_000_000,
      event: 'message',
      topic: 't',
      title: 'x',
      message: 'hi',
      tags: ['a'],
      attachment: { name: 'n', url: 'https://x.test', type: 'a/b', size: 1 },
    },
    parsed(Line, decodeLine),
  ],
  [
    'gotify',
    {
      id: 2,
      appid: 7,
      message: 'hi',
      title: 'x',
      priority: 2,
      date: '2026-11-20T12:00:00Z',
      extras: { 'home::lamp::on': { level: 15 } },
    },
    parsed(gotifyWire.Message, (message) => gotify.decodeMessage(message, 'Front door')),
  ],
  [
    'zulip',
    {
      id: 2,
      type: 'stream',
      sender_id: 8,
      sender_full_name: 'Ada',
      sender_email: 'ada@x.test',
      stream_id: 42,
      subject: 't',
      display_recipient: 'general',
      content: '@**Helper** hi [a.png](/user_uploads/2/a/a.png)',
      timestamp: 1_760_000_000,
    },
    parsed(zulipWire.Message, (message) =>
      zulip.decodeMessage(message, {
        bot: { user_id: 12, full_name: 'Helper', email: 'h@x.test' },
        flags: ['mentioned'],
      }),
    ),
  ],
  [
    'mqtt',
    { text: 'hi', id: 'i', sender: 'ada', reply_to: 'r' },
    (raw) => {
      const payload = mqtt.readPayload(Buffer.from(JSON.stringify(raw) ?? ''))
      const config = { subscribe_topics: ['in/+'], response_topics: ['#'] } as unknown as MqttConfig
      const packet = { cmd: 'publish', topic: 'in/ada', payload: '', qos: 1, dup: false, retain: false } as const
      return payload && mqtt.decodeMessage(packet, payload, { id: payload.id ?? 'i', config, now: NOW })
    },
  ],
  [
    'irc',
    { time: '2026-11-20T12:00:00Z', msgid: 'm', account: 'ada', text: 'bot: hi' },
    (raw) => {
      const field = (name: string) => String(Object(raw)[name] ?? '').replaceAll(/[\r\n\0]/g, '')
      const tags = ['time', 'msgid', 'account'].map((name) => `${name}=${field(name)}`).join(';')
      const line = parseLine(`@${tags} :ada!u@h PRIVMSG #room :${field('text')}`)
      return line && irc.decodeMessage(line, { nick: 'bot', hasAccounts: true, now: NOW })
    },
  ],
  [
    'xmpp',
    { from: 'room@x.test/ada', type: 'groupchat', id: 'i', body: 'svc: hi', stamp: '2026-11-20T12:00:00Z' },
    (raw) => {
      const { body, stamp, ...attributes } = Object(raw) as Record<string, unknown>
      const fields = Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, String(value)]))
      const delay = xml('delay', { xmlns: 'urn:xmpp:delay', stamp: String(stamp) })
      const stanza = xml('message', { ...fields, type: 'chat' }, xml('body', {}, String(body)), delay)
      const config = { jid: 'bot@x.test', rooms: [], nick: 'svc' } as unknown as XmppConfig
      return xmpp.decodeMessage(stanza, { config, now: NOW })
    },
  ],
]

for (const [name, valid, read] of readers) testHostileInput(name, valid, read)

it('reads no file of Matrix from another place of the homeserver', () => {
  const context = { roomId: '!r', botId: '@b:x', isDirect: true, names: new Map<string, string>(), isOwn: () => false }
  const of = (url: string) =>
    matrix.decodeEvent(
      {
        type: 'm.room.message',
        event_id: '$1',
        sender: '@a:x',
        origin_server_ts: 1,
        content: { msgtype: 'm.file', body: 'n', filename: 'n', url },
      } as matrixWire.Event,
      context,
    )?.attachments
  for (const url of ['mxc://../config', 'mxc://x.test/..', 'mxc://x.test/a?b', 'mxc://x.test/%2e%2e', 'https://x/y'])
    expect(of(url) ?? []).toEqual([])
  expect(of('mxc://x.test:8448/AbC_-1')).toHaveLength(1)
  expect(of('mxc://[2001:db8::1]:80/AbC')).toHaveLength(1)
})

it('takes a private message of somebody in a room for one of that person, and answers it there alone', () => {
  const config = { jid: 'bot@x.test', rooms: ['Room@rooms.test'], nick: 'svc' } as unknown as XmppConfig
  const of = (from: string) =>
    xmpp.decodeMessage(xml('message', { from, type: 'chat', id: '1' }, xml('body', {}, 'hi')), { config, now: NOW })
  expect(of('room@rooms.test/ada')).toMatchObject({
    chat: { id: 'room@rooms.test/ada', kind: 'direct' },
    sender: { id: 'room@rooms.test/ada', name: 'ada', isUnverified: true },
  })
  expect(of('room@rooms.test/svc')).toBeUndefined()
  expect(xmpp.isRoom('room@rooms.test/ada', config)).toBe(false)
  expect(xmpp.isRoom('room@rooms.test', config)).toBe(true)
})

describe('mail', () => {
  const config = { address: 'bot@svc.test' } as EmailConfig
  const read = (mail: string) => decodeMail({ source: Buffer.from(mail), uid: 1, uidValidity: '1', at: NaN }, config)

  it.each([
    'From: Mail Delivery <MAILER-DAEMON@mx.test>',
    'From: noreply@shop.test',
    'From: bounces+ada@list.test',
    'From: a@b.test\r\nContent-Type: multipart/report; boundary=x',
    'From: a@b.test\r\nX-Auto-Response-Suppress: DR, AutoReply',
    'From: a@b.test\r\nList-Unsubscribe: <https://x.test>',
    'From: a@b.test\r\nAuto-Submitted: auto-generated',
    'From: a@b.test\r\nPrecedence: junk',
    'From: Bot@SVC.test',
    'Subject: nobody',
  ])('of a machine is not answered: %s', async (headers) => {
    expect(await read(`${headers}\r\n\r\nhello`)).toHaveProperty('dropped')
  })

  it('with hostile headers is read', async () => {
    const from = `From: "\u0007<b>@everyone</b>" <a@b.test>`
    const name = 'Content-Type: text/html; name="../../etc/passwd"'
    const disposition = 'Content-Disposition: attachment; filename="..\\..\\a/b\u0000c"'
    for (const headers of [from, `${from}\r\n${name}\r\n${disposition}`, `${from}\r\nDate: ${'9'.repeat(1000)}`]) {
      const mail = await read(`${headers}\r\nReferences: ${'<a@b> '.repeat(10_000)}\r\n\r\n${'<'.repeat(100_000)}`)
      if ('message' in mail) {
        checkMessage(mail.message)
        expect(JSON.stringify(mail.message.replyContext).length).toBeLessThan(4096)
        for (const { name: file } of mail.message.attachments) expect(file).not.toMatch(/[/\\\0]/)
      } else expect(mail.dropped).toBeTypeOf('string')
    }
  })

  it('of ten megabytes of HTML is read in time', () => {
    const start = process.threadCpuUsage()
    for (const piece of ['<p', '<', '&lt;', '<!--', '<script>']) htmlToText(piece.repeat(10_000_000 / piece.length))
    expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(3000)
  })
})
