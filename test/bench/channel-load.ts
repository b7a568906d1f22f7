import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { accountToml, startFakes, waitForConnections } from './channel-fakes.ts'
import type { Result } from './figures.ts'
import { Home, startSvc } from './processes.ts'

const PER_SECOND = 1000
const SECONDS = 10
const MAX_WAIT_MS = 180_000
const POLL_MS = 100
/** Long polls, event streams, WebSockets with and without receipts, TCP and webhooks. */
const CHANNELS = [
  'telegram',
  'matrix',
  'zulip',
  'ntfy',
  'discord',
  'mattermost',
  'slack',
  'mqtt',
  'whatsapp',
  'webhook',
]

/**
 * Messages over ten channels at once. Platforms take fewer answers in a second than that, so most of them wait in the
 * outbox: each message has one answer there, and no answer is shown twice.
 */
export async function channelLoad(): Promise<readonly Result[]> {
  await using fakes = await startFakes(CHANNELS)
  const sections = fakes.accounts.map(({ channel, config, person }) =>
    accountToml(channel, 'default', {
      ...config,
      allowed_users: [person],
      agent_name: 'assistant',
      rate_limit_per_user: 0,
      rate_limit_per_minute: 0,
    }),
  )
  using home = new Home(`${sections.join('\n')}\n[plugins.channels]\nwebhook_rate_per_minute = 1000000\n`)
  await using svc = await startSvc(home)
  fakes.connect(`http://127.0.0.1:${svc.port}`)
  for (const channel of CHANNELS) await waitForConnections(svc.port, channel, 1)
  const cpuBefore = svc.cpuMs()
  const begun = performance.now()
  const { total, refused, offeredMs } = await fakes.load(PER_SECOND, SECONDS)
  using journal = new Journal(home)
  const storedMs = (await journal.until(({ received }) => received >= total)) - begun
  const answeredMs = (await journal.until(({ open }) => open === 0)) - begun
  const cpuMs = (svc.cpuMs() - cpuBefore) / total
  const answers = journal.answers()
  const shown = await fakes.shown()
  const expected = Array.from({ length: total }, (_, number) => `${CHANNELS[number % CHANNELS.length]}-${number}`)
  const times = countEach(answers)
  const missing = expected.filter((text) => times.get(text) !== 1)
  const twice = [...countEach(shown).values()].filter((count) => count > 1).length
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
  const label = `${total} messages over ${CHANNELS.length} channels at ${PER_SECOND}/s`
  return [
    {
      label: `${label}: answered once; refused, lost or answered twice, shown twice`,
      value: `${total - missing.length}; ${refused.length}, ${missing.length}, ${twice}`,
      floor: '-',
      ratio: '-',
      goal: 'all once',
      reached: refused.length === 0 && missing.length === 0 && twice === 0,
    },
    {
      label: `${label}: the last is stored; answered; of a core each`,
      value: `${seconds(storedMs)}; ${seconds(answeredMs)}; ${cpuMs.toFixed(2)} ms`,
      floor: `offered in ${seconds(offeredMs)}`,
      ratio: '-',
      goal: '<= +1 s',
      reached: storedMs <= offeredMs + 1000,
    },
  ]
}

function countEach(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

interface Progress {
  readonly received: number
  /** Received and not answered. */
  readonly open: number
}
/** The inbox and the outbox, read beside the daemon. */
class Journal implements Disposable {
  readonly #db: Database.Database
  constructor(home: Home) {
    this.#db = new Database(join(home.path, 'data/svc.db'), { readonly: true })
  }

  /** When it was so, by `performance.now()`. Throws when it takes too long. */
  async until(isSo: (progress: Progress) => boolean): Promise<number> {
    const query = this.#db.prepare<[], Progress>(
      `SELECT count(*) AS received, count(*) FILTER (WHERE state <> 'done') AS open FROM channels_inbox`,
    )
    for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
      const progress = query.get()
      if (progress && isSo(progress)) return performance.now()
    }
    const states = this.#db.prepare('SELECT channel, state, count(*) AS n FROM channels_inbox GROUP BY channel, state')
    throw new Error(`lost or too slow: ${JSON.stringify(states.all())}`)
  }
  /** The texts of all answers, sent or not. */
  answers(): readonly string[] {
    const rows = this.#db.prepare<[], { text: string }>(
      `SELECT payload ->> 'plainText' AS text FROM channels_outbox WHERE kind = 'answer'`,
    )
    return rows.all().map(({ text }) => text)
  }
  [Symbol.dispose](): void {
    this.#db.close()
  }
}
