import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChannelAdapter } from 'svc/channels'
import { startDaemon } from '../support/daemon.ts'
import { deliverUntilTaken, platforms } from '../support/platforms/all.ts'
import { startFakeFeishu } from '../support/platforms/feishu.ts'
import type { FakeFeishu } from '../support/platforms/feishu.ts'
import type { FakePlatform, PlatformFault } from '../support/platforms/platform.ts'
import { generator } from './crash.ts'
import { spawnAgent } from './delivery.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * A long poll and a sync, an event stream, WebSockets with catching up, with resumed sessions and with receipts, webhooks
 * with a key and without, and a connection whose access token expires.
 */
const CHANNELS = ['telegram', 'matrix', 'ntfy', 'mattermost', 'discord', 'slack', 'line', 'whatsapp', 'feishu']
const FAULTS: readonly PlatformFault[] = [
  { kind: 'server_error' },
  { kind: 'rate_limit', retryAfterSecs: 1 },
  { kind: 'reset' },
  { kind: 'lost_answer' },
]
const MESSAGES_A_ROUND = 2
const MAX_PAUSE_MS = 400
const POLL_MS = 20
const MAX_WAIT_MS = 300_000

/**
 * Messages over nine channels of different transports, while the platforms fail, cut connections and let a token expire,
 * and the daemon is killed: none is lost, and each is answered once where the platform has a key for that.
 */
export async function channels({ rounds, seed, built }: FaultOptions): Promise<FaultReport> {
  const random = generator(seed)
  const home = mkdtempSync(join(tmpdir(), 'svc-channels-'))
  const feishu = await startFakeFeishu()
  const fakes = new Map<string, FakePlatform>()
  for (const channel of CHANNELS) {
    const start = channel === 'feishu' ? async () => feishu : platforms[channel]
    if (!start) throw new Error(`There is no platform ${channel}`)
    fakes.set(channel, await start())
  }
  writeFileSync(join(home, 'config.toml'), toConfig([...fakes.values()]))
  let daemon = await startDaemon({ home, built })
  const over = new AbortController()
  try {
    for (const fake of fakes.values())
      fake.setWebhook((request) => deliverUntilTaken(() => daemon.url, fake.channel, request))
    await spawnAgent(daemon)
    const count = rounds * MESSAGES_A_ROUND
    const begun = await Promise.all([...fakes.values()].map((fake) => waitUntilConnected(daemon.url, fake)))
    if (begun.includes(false)) throw new Error('not every channel is connected')
    const delivering = [...fakes.values()].map((fake) => deliverAll(fake, count, random))
    const cutting = cutNowAndThen([...fakes.values()], feishu, random, over.signal)
    const total = count * CHANNELS.length
    for (let kill = 1; kill <= rounds; kill++) {
      await waitForAnswers(fakes, Math.floor((total * kill) / (rounds + 1)))
      await delay(random() * MAX_PAUSE_MS)
      await daemon.kill()
      daemon = await startDaemon({ home, built })
    }
    await Promise.all(delivering)
    over.abort()
    await waitForAnswers(fakes, total)
    const twice = Object.fromEntries(
      [...fakes].map(([channel, fake]) => [channel, answersOf(fake).length - new Set(answersOf(fake)).size] as const),
    )
    const problems = await Promise.all([...fakes].map(([channel, fake]) => findProblems(channel, fake, count)))
    return { messages: total, kills: rounds, cuts: await cutting, twice, problems: problems.flat() }
  } finally {
    over.abort()
    await daemon.kill()
    for (const fake of fakes.values()) await fake[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
}

async function deliverAll(fake: FakePlatform, count: number, random: () => number): Promise<void> {
  const faults = FAULTS.filter(({ kind }) => fake.faults.has(kind))
  for (let number = 0; number < count; number++) {
    const fault = faults[number % faults.length]
    if (fault) fake.fail(fault)
    await fake.deliver({ text: `echo ${fake.channel} ${number}` })
    await delay(random() * MAX_PAUSE_MS)
  }
}

/** Returns how many connections were cut, and how many tokens ended. */
async function cutNowAndThen(
  fakes: readonly FakePlatform[],
  feishu: FakeFeishu,
  random: () => number,
  over: AbortSignal,
): Promise<number> {
  let count = 0
  for (; !over.aborted; count++) {
    await delay(random() * MAX_PAUSE_MS)
    if (random() < 0.3) feishu.revokeToken()
    else await fakes[Math.floor(random() * fakes.length)]?.disconnect?.()
  }
  return count
}

const answersOf = ({ sent, channel }: FakePlatform): readonly number[] =>
  sent.flatMap(({ text }) => {
    const [, number] = new RegExp(`\\b${channel} (\\d+)`).exec(text) ?? []
    return number === undefined ? [] : [Number(number)]
  })

async function findProblems(channel: string, fake: FakePlatform, count: number): Promise<readonly string[]> {
  const { default: adapter } = (await import(`../../adapters/channels/${channel}/adapter.ts`)) as {
    readonly default: ChannelAdapter
  }
  const answers = answersOf(fake)
  const inOrder = [...new Set(answers)]
  const lost = Array.from({ length: count }, (_, number) => number).filter((number) => !inOrder.includes(number))
  const isTwice = adapter.capabilities.idempotentSend && answers.length > inOrder.length
  return [
    ...lost.map((number) => `${channel}: message ${number} was not answered`),
    ...(isTwice ? [`${channel}: ${answers.length - inOrder.length} answers were shown twice`] : []),
    ...(inOrder.some((number, index) => number !== index) && lost.length === 0
      ? [`${channel}: answers overtook each other: ${inOrder.join()}`]
      : []),
    ...fake.violations.map((violation) => `${channel} refused a request: ${violation}`),
  ]
}

/** Settles when so many different messages are answered, or when it takes too long: then they are counted as they are. */
async function waitForAnswers(fakes: ReadonlyMap<string, FakePlatform>, count: number): Promise<void> {
  const answered = (): number => [...fakes.values()].reduce((sum, fake) => sum + new Set(answersOf(fake)).size, 0)
  for (const began = Date.now(); answered() < count && Date.now() - began < MAX_WAIT_MS;) await delay(POLL_MS)
}

async function waitUntilConnected(url: string, { channel }: FakePlatform): Promise<boolean> {
  for (const began = Date.now(); Date.now() - began < MAX_WAIT_MS; await delay(POLL_MS)) {
    const answer = await fetch(`${url}/api/channels/${channel}`)
    const { status } = (await answer.json()) as { readonly status: { readonly state: string } }
    if (status.state === 'connected') return true
  }
  return false
}

function toConfig(fakes: readonly FakePlatform[]): string {
  const sections = fakes.map(({ channel, config, person }) => {
    const fields = {
      ...config,
      agent_name: 'echo',
      allowed_users: [person],
      rate_limit_per_user: 0,
      rate_limit_per_minute: 0,
    }
    return [
      `[channels.${channel}]`,
      ...Object.entries(fields).map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
    ]
  })
  return `
[rate_limit]
tokens_per_minute = 1000000000
${sections.flat().join('\n')}
[plugins.channels]
max_attempts = 100
max_rejections = 100
reconnect_min_ms = 50
send_retry_min_ms = 20
send_retry_max_ms = 100
webhook_rate_per_minute = 1000000
`
}
