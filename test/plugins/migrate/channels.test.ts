import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import type { ChannelAdapter } from 'svc/channels'
import { HomeDraft } from '../../../plugins/migrate/model.ts'
import { readChannels } from '../../../plugins/migrate/readers/channels.ts'

type Section = Readonly<Record<string, unknown>>

/** What a section of the other system becomes: the fields of each channel, and the reasons for what is left. */
function read(section: Section, variables: Readonly<Record<string, string>> = {}) {
  const draft = new HomeDraft({ maxMemories: 1 })
  readChannels(draft, { section, variables: (name) => variables[name], foundSecret() {} })
  return { channels: draft.channels, left: draft.left }
}

const adapters: Readonly<Record<string, () => Promise<{ readonly default: ChannelAdapter }>>> = {
  email: () => import('../../../adapters/channels/email/adapter.ts'),
  xmpp: () => import('../../../adapters/channels/xmpp/adapter.ts'),
  mqtt: () => import('../../../adapters/channels/mqtt/adapter.ts'),
  ntfy: () => import('../../../adapters/channels/ntfy/adapter.ts'),
  gotify: () => import('../../../adapters/channels/gotify/adapter.ts'),
}

describe('channels of OpenFang', () => {
  it.each<[channel: string, section: Section, variables: Readonly<Record<string, string>>, fields: Section]>([
    [
      'email',
      {
        imap_host: 'imap.example.org',
        imap_port: 993,
        smtp_host: 'smtp.example.org',
        smtp_port: 587,
        username: 'bot@example.org',
        folders: ['Bots'],
        allowed_senders: ['ada@example.org'],
      },
      { EMAIL_PASSWORD: 'p' },
      {
        base_url: 'imaps://imap.example.org:993',
        smtp_url: 'smtp://smtp.example.org:587',
        address: 'bot@example.org',
        token: 'p',
        folder: 'Bots',
        allowed_users: ['ada@example.org'],
      },
    ],
    [
      'xmpp',
      { jid: 'bot@example.org', password_env: 'JABBER', server: 'chat.example.org', port: 5222, rooms: ['a@b.org'] },
      { JABBER: 'p' },
      { jid: 'bot@example.org', token: 'p', base_url: 'xmpp://chat.example.org:5222', rooms: ['a@b.org'] },
    ],
    [
      'mqtt',
      { broker_url: 'ssl://broker.example.org:8883', subscribe_topic: 'fang/in', publish_topic: 'fang/out', qos: 2 },
      { MQTT_USERNAME: 'bot', MQTT_PASSWORD: 'p' },
      {
        base_url: 'mqtts://broker.example.org:8883',
        subscribe_topics: ['fang/in'],
        publish_topic: 'fang/out',
        username: 'bot',
        token: 'p',
        qos: 1,
      },
    ],
    ['ntfy', { topic: 'helper', publish_topic: 'x' }, {}, { topic: 'helper' }],
    ['ntfy', { topic: 'helper', token_env: 'T' }, { T: 'tk_1' }, { topic: 'helper', token: 'tk_1' }],
    [
      'gotify',
      { server_url: 'https://push.example.org' },
      { GOTIFY_APP_TOKEN: 'A', GOTIFY_CLIENT_TOKEN: 'C' },
      { base_url: 'https://push.example.org', token: 'A', client_token: 'C' },
    ],
  ])('%s: comes over with fields that its adapter takes', async (channel, section, variables, fields) => {
    const { channels, left } = read({ [channel]: section }, variables)
    expect(left).toEqual([])
    expect(channels).toEqual([{ channel, account: 'default', agent: undefined, fields }])
    const { allowed_users: _, ...own } = fields
    const { default: adapter } = (await adapters[channel]?.()) ?? {}
    expect(v.safeParse(adapter?.config ?? v.never(), own).issues).toBeUndefined()
  })

  it('a token that is in the usual variable need not be named', () => {
    const { channels } = read({ telegram: {} }, { TELEGRAM_BOT_TOKEN: '1:a' })
    expect(channels).toMatchObject([{ channel: 'telegram', fields: { token: '1:a' } }])
  })

  it('says how a channel is added, as it is typed', () => {
    const [{ reason } = { reason: '' }] = read({ telegram: {} }).left
    expect(reason).toMatch(/TELEGRAM_BOT_TOKEN is not in the folder: `svc channels add telegram`$/)
  })

  it('says which variables are not there', () => {
    const { left } = read({ gotify: { server_url: 'https://push.example.org' } })
    expect(left).toMatchObject([
      {
        name: 'gotify',
        reason: expect.stringMatching(
          /needs token, client_token, and GOTIFY_APP_TOKEN and GOTIFY_CLIENT_TOKEN are not in/,
        ),
      },
    ])
  })
})
