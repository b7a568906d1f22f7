import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { turnPlugins } from '../plugins/plugin-test.ts'
import { startFakeMattermost } from '../support/platforms/mattermost.ts'
import { FakeNtfy } from '../support/platforms/ntfy.ts'
import type { FakePlatform, PlatformRequest } from '../support/platforms/platform.ts'
import { FakeTelegram } from '../support/platforms/telegram.ts'
import { FakeWebhook } from '../support/platforms/webhook.ts'
import { FakeWhatsApp } from '../support/platforms/whatsapp.ts'

// The contract of channels as a daemon keeps it: adapters, inbox, agents and outbox together. The model repeats what
// it is told, so an answer shows which message it belongs to.

const starts = {
  webhook: () => FakeWebhook.start(),
  telegram: () => FakeTelegram.start(),
  ntfy: () => FakeNtfy.start(),
  whatsapp: () => FakeWhatsApp.start(),
  mattermost: () => startFakeMattermost(),
}
const names = Object.keys(starts) as (keyof typeof starts)[]
/**
 * Those whose platform takes a message and does not say so. It is sent again then: ntfy shows it twice, having no ids of
 * the sender, and the others once.
 */
const withoutReceipt = new Set(['webhook', 'mattermost', 'ntfy'])

const platforms = new Map<string, FakePlatform>()
let test: PluginTest

const platformOf = (name: string): FakePlatform => {
  const platform = platforms.get(name)
  if (!platform) throw new Error(`There is no platform ${name}`)
  return platform
}
const shown = (name: string, text: string): number =>
  platformOf(name).sent.filter((message) => message.text === text).length

/** Brings a request to the webhook of the daemon, as the platform would. */
async function postWebhook(name: string, { method, query, headers, body }: PlatformRequest) {
  const path = `/api/channels/${name}/webhook?${new URLSearchParams(query).toString()}`
  const content = method === 'GET' ? {} : { body: new Uint8Array(body) }
  const response = await test.fetch(path, { method, headers, ...content })
  return { status: response.status, body: await response.text() }
}

interface Status {
  readonly state: string
  readonly last_error: string | null
  readonly help: string | null
  readonly failed: number
}
/** Settles when the status of a channel is as described. */
async function waitForStatus(name: string, matches: (status: Status) => boolean): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    const { body } = await test.request<{ status: Status }>('GET', `/api/channels/${name}`)
    if (matches(body.status)) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`the status of ${name} did not change`)
}

/** Settles when every channel is connected. */
async function connect(): Promise<void> {
  for (const name of names) {
    await platformOf(name).waitForListener?.()
    await waitForStatus(name, ({ state }) => state === 'connected')
  }
}

beforeAll(async () => {
  for (const name of names) {
    const platform = await starts[name]()
    platform.setWebhook((request) => postWebhook(name, request))
    platforms.set(name, platform)
  }
  const account = (name: string) => {
    const { config, person } = platformOf(name)
    const limits = { rate_limit_per_user: 0, rate_limit_per_minute: 0 }
    return [name, { ...config, ...limits, agent_name: 'echo', allowed_users: [person] }] as const
  }
  test = await startPlugin({
    plugin: new URL('../../adapters/channels/webhook', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'approvals', 'files', 'channels', ...names],
    config: { channels: Object.fromEntries(names.map(account)) },
    database: 'file',
    fetch: 'network',
  })
  await test.spawn('echo')
  await connect()
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  for (const platform of platforms.values()) await platform[Symbol.asyncDispose]()
})

describe.each(names)('%s', (name) => {
  it('answers a message once, however often it is delivered', async () => {
    const platform = platformOf(name)
    const count = platform.sent.length
    const id = await platform.deliver({ text: 'delivered twice' })
    await platform.waitForSent(count + 1)
    await platform.deliver({ text: 'delivered twice', redeliveryOf: id })
    await platform.deliver({ text: 'and another' })
    await platform.waitForSent(count + 2)
    expect(shown(name, 'delivered twice')).toBe(1)
    expect(shown(name, 'and another')).toBe(1)
    expect(platform.violations).toEqual([])
  })

  it('refuses requests that the platform did not sign with 401', async () => {
    for (const request of platformOf(name).forgeries?.() ?? [])
      expect((await postWebhook(name, request)).status).toBe(401)
    expect(shown(name, 'forged')).toBe(0)
  })
})

describe.each(['telegram', 'mattermost', 'ntfy', 'whatsapp'] as const)(
  'credentials of %s that are taken back',
  (name) => {
    it('are told with what to do, and not tried again; when they are good again, nothing was lost', async () => {
      const platform = platformOf(name)
      const { revocation } = platform
      if (!revocation) throw new Error(`the credentials of ${name} cannot be taken back`)
      const count = platform.sent.length
      revocation.isRevoked = true
      await platform.disconnect?.()
      // A platform that calls a webhook learns at the next message that they are refused, and calls again later.
      const texts = platform.disconnect
        ? ['written meanwhile', 'This is a test message of svc.']
        : ['This is a test message of svc.']
      if (platform.disconnect) await platform.deliver({ text: 'written meanwhile' })
      await test.request('POST', `/api/channels/${name}/test`, { chat_id: platform.chats.direct })
      await waitForStatus(name, ({ state }) => state === 'misconfigured')
      const { requests } = revocation
      const { body } = await test.request<{ status: Status }>('GET', `/api/channels/${name}`)
      expect(body.status).toMatchObject({ next_retry_at: null, outbox: 1, dead_letters: 0 })
      expect(body.status.last_error).toMatch(/401|authenticated|Unauthorized/i)
      expect(body.status.help).toContain(`[channels.${name}]`)
      if (!platform.disconnect) await expect(platform.deliver({ text: 'too early' })).rejects.toThrow('503')
      expect(revocation.requests).toBe(requests)

      revocation.isRevoked = false
      await test.request('PUT', `/api/channels/${name}/enable`)
      await waitForStatus(name, ({ state }) => state === 'connected')
      const sent = await platform.waitForSent(count + texts.length)
      expect(
        sent
          .slice(count)
          .map(({ text }) => text)
          .toSorted(),
      ).toEqual(texts.toSorted())
      await platform.waitForListener?.()
    })
  },
)

describe('a daemon that ends', () => {
  it('sends afterwards what the platform did not take, or what it took without a receipt', async () => {
    const before = new Map(names.map((name) => [name, platformOf(name).sent.length]))
    for (const name of names) {
      // Between outbox and platform, or between platform and receipt.
      platformOf(name).fail({ kind: withoutReceipt.has(name) ? 'lost_answer' : 'server_error' })
      await platformOf(name).deliver({ text: 'before the end' })
      await waitForStatus(name, ({ failed }) => failed > 0)
    }
    await test.restart()
    await connect()
    for (const name of names) await platformOf(name).deliver({ text: 'after the start' })
    for (const name of names) {
      const most = name === 'ntfy' ? 2 : 1
      const sent = await platformOf(name).waitForSent((before.get(name) ?? 0) + 1 + most)
      const texts = sent.slice(before.get(name)).map(({ text }) => text)
      expect(texts, name).toEqual([...Array.from({ length: most }, () => 'before the end'), 'after the start'])
    }
  })

  it('loses and repeats nothing while adapters are reloaded under traffic', async () => {
    const texts = Array.from({ length: 20 }, (_, index) => `under traffic ${index}`)
    const before = ['ntfy', 'mattermost'].map((name) => [name, platformOf(name).sent.length] as const)
    for (const [index, text] of texts.entries()) {
      await platformOf('ntfy').deliver({ text })
      if (index % 5 === 2) await test.reload()
      await platformOf('mattermost').deliver({ text })
      if (index % 5 === 4) await test.request('POST', '/api/channels/reload')
    }
    for (const [name, count] of before) {
      await platformOf(name).waitForSent(count + texts.length)
      expect(texts.map((text) => shown(name, text))).toEqual(texts.map(() => 1))
    }
  })

  it('puts out no secret of a channel', async () => {
    const pages = await Promise.all(
      ['/api/channels', '/api/audit/recent?limit=100', ...names.map((name) => `/api/channels/${name}`)].map(
        async (path) => (await test.fetch(path)).text(),
      ),
    )
    const output = [...pages, ...test.log].join('\n')
    for (const name of names)
      for (const secret of platformOf(name).secrets) expect(output.includes(secret), `a secret of ${name}`).toBe(false)
  })
})
