import type { Json } from '../../support/json.ts'
import { until } from './client.ts'
import type { Client } from './client.ts'
import { agentOf, SETTLES_MS } from './load.ts'
import type { Load } from './load.ts'
import type { Receiver } from './receiver.ts'

const MINUTE_MS = 60_000
const PATH = '/slot/minutes'

/**
 * A schedule of every minute, through all rounds. Its results are counted by the receiver, which is told their slots. A
 * slot without one has a record that says which one ran for it.
 */
export class RecurringLoad implements Load {
  readonly figures = { minutes: 0, minutes_skipped: 0 }
  readonly #client: Client
  readonly #receiver: Receiver
  #id = ''
  #first: number | undefined
  constructor(client: Client, receiver: Receiver) {
    this.#client = client
    this.#receiver = receiver
  }

  async prepare(): Promise<void> {
    if (this.#first !== undefined) return
    const agentId = await this.#client.make('/api/agents', 'agent_id', agentOf('minutes'))
    this.#id = await this.#client.make('/api/schedules', 'id', {
      agent_id: agentId,
      name: 'minutes',
      schedule: { kind: 'cron', expr: '* * * * *' },
      prompt: 'say r0-0-0',
      session_mode: 'new',
      delivery: { kind: 'webhook', url: this.#receiver.url + PATH },
    })
    this.#first = (Math.floor(Date.now() / MINUTE_MS) + 1) * MINUTE_MS
  }
  run(): Promise<void> {
    return Promise.resolve()
  }
  async check(): Promise<readonly string[]> {
    const first = this.#first ?? Infinity
    const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
    let skipped: (minute: number) => boolean = () => false
    await until(async () => {
      skipped = await this.#skipped()
      return now < first || this.#counts().has(now) || skipped(now)
    }, SETTLES_MS)
    const counts = this.#counts()
    // A daemon whose clock is ahead is too early, and skips none.
    const last = Math.max(now, ...counts.keys())
    const problems: string[] = []
    this.figures.minutes_skipped = 0
    for (let minute = first; minute <= last; minute += MINUTE_MS) {
      const times = counts.get(minute) ?? 0
      if (times === 0 && skipped(minute)) this.figures.minutes_skipped++
      else if (times !== 1) problems.push(`the slot ${new Date(minute).toISOString()} sent ${times} results`)
    }
    this.figures.minutes = counts.size
    return problems
  }
  async #skipped(): Promise<(minute: number) => boolean> {
    const { slots } = await this.#client.get(`/api/schedules/${this.#id}/slots?limit=500`)
    const records = (slots as readonly Json[]).filter(({ state }) => state === 'skipped')
    return (minute) =>
      records.some(({ slot, until: end }) => Date.parse(slot) <= minute && minute <= Date.parse(end ?? slot))
  }
  /** Results by their slot. */
  #counts(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>()
    for (const { data } of (this.#receiver.taken.get(PATH) ?? []) as readonly Json[]) {
      const slot = Date.parse(data.slot)
      counts.set(slot, (counts.get(slot) ?? 0) + 1)
    }
    return counts
  }
}
