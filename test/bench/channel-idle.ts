import { startFakeDiscord } from '../support/platforms/discord.ts'
import { NgircdPlatform, startNgircd } from '../support/platforms/irc.ts'
import { startFakeMattermost } from '../support/platforms/mattermost.ts'
import { MosquittoPlatform, startMosquitto } from '../support/platforms/mqtt.ts'
import { accountToml, waitForConnections } from './channel-fakes.ts'
import type { Result } from './figures.ts'
import { measureMemory } from './memory.ts'
import type { Memory } from './memory.ts'

const ACCOUNTS = 20
const LIMIT_MB = 3
type Fields = Readonly<Record<string, unknown>>
interface Kind extends AsyncDisposable {
  readonly channel: string
  /** The fields of one of several accounts. */
  fields(index: number): Fields
}
/**
 * What connected channels cost that nobody writes to: accounts of the real adapters, connected to real servers of
 * their protocol or to fakes.
 */
export async function channelIdle(): Promise<readonly Result[]> {
  const none = await measure(undefined, 0)
  const results: Result[] = []
  for (const start of [webhook, irc, mqtt, mattermost, discord]) {
    await using kind = await start()
    const [one, many] = [await measure(kind, 1), await measure(kind, 1 + ACCOUNTS)]
    const mb = (from: Memory, to: Memory, of: keyof Memory, by = 1): number => (to[of] - from[of]) / by / 1024 / 1024
    const [live, rss] = [mb(one, many, 'live', ACCOUNTS), mb(one, many, 'rss', ACCOUNTS)]
    results.push({
      label: `an idle ${kind.channel} account, of ${ACCOUNTS}; RSS`,
      value: `${live.toFixed(2)} MB; ${rss.toFixed(2)} MB`,
      floor: `first account with all code: ${mb(none, one, 'live').toFixed(1)} MB; ${mb(none, one, 'rss').toFixed(1)} MB`,
      ratio: '-',
      goal: `<= ${LIMIT_MB} MB`,
      reached: live <= LIMIT_MB && rss <= LIMIT_MB,
    })
  }
  return results
}

async function measure(kind: Kind | undefined, count: number): Promise<Memory> {
  return await measureMemory(kind ? toToml(kind, count) : '', async ({ port }) => {
    if (kind) await waitForConnections(port, kind.channel, count)
  })
}

function toToml(kind: Kind, count: number): string {
  return Array.from({ length: count }, (_, index) =>
    accountToml(kind.channel, `bench${index}`, kind.fields(index)),
  ).join('\n')
}

async function webhook(): Promise<Kind> {
  const fields = { token: 'the-secret-of-the-idle-figure', callback_url: 'http://127.0.0.1:9/' }
  return { channel: 'webhook', fields: () => fields, async [Symbol.asyncDispose]() {} }
}
async function irc(): Promise<Kind> {
  const server = await startNgircd()
  const platform = await NgircdPlatform.start(server)
  return {
    channel: 'irc',
    fields: (index) => ({ ...platform.config, nick: `bench${index}` }),
    async [Symbol.asyncDispose]() {
      await platform[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}
async function mqtt(): Promise<Kind> {
  const server = await startMosquitto()
  const platform = await MosquittoPlatform.start(server, 'v5')
  return {
    channel: 'mqtt',
    fields: (index) => ({ ...platform.config, client_id: `bench-${index}` }),
    async [Symbol.asyncDispose]() {
      await platform[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}
async function mattermost(): Promise<Kind> {
  const platform = await startFakeMattermost()
  return {
    channel: 'mattermost',
    fields: () => platform.config,
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  }
}
async function discord(): Promise<Kind> {
  const platform = await startFakeDiscord()
  return {
    channel: 'discord',
    fields: () => platform.config,
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  }
}
