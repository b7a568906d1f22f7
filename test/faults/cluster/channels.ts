import { createHmac } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { FakeTelegram } from '../../support/platforms/telegram.ts'
import { Platform, deliver } from '../delivery.ts'
import { isDown, until } from './client.ts'
import type { Client } from './client.ts'
import { agentOf, SETTLES_MS } from './load.ts'
import type { Load } from './load.ts'
import type { Marks } from './marks.ts'

const PAUSE_MS = 300
const SECRET = 'the-secret-of-the-delivery-fault'
/** Of programs that ask an agent without the key of the API. */
export const HOOK_TOKEN = 'a-token-of-more-than-thirty-two-characters'
const AGENT = 'chatter'

/**
 * People on two platforms: one calls a webhook and shows each message by its key once, the other is polled and shows what
 * it is sent. And programs that ask an agent by an inbound webhook, whose answers go to the first platform.
 */
export class ChannelLoad implements Load {
  readonly figures = {
    webhook_messages: 0,
    telegram_messages: 0,
    telegram_unanswered: 0,
    inbound_webhooks: 0,
    inbound_webhooks_failed: 0,
  }
  readonly #client: Client
  readonly #marks: Marks
  readonly #platform: Platform
  readonly #telegram: FakeTelegram
  readonly #callback: string
  #webhook: string[] = []
  #telegrams: string[] = []
  #hooks: string[] = []
  #isMade = false
  private constructor(client: Client, marks: Marks, given: readonly [Platform, FakeTelegram, string]) {
    this.#client = client
    this.#marks = marks
    ;[this.#platform, this.#telegram, this.#callback] = given
  }
  static async start(client: Client, marks: Marks, random: () => number): Promise<ChannelLoad & AsyncDisposable> {
    const platform = new Platform(random)
    const callback = await platform.listen()
    const telegram = await FakeTelegram.start()
    const load = new ChannelLoad(client, marks, [platform, telegram, callback])
    return Object.assign(load, {
      async [Symbol.asyncDispose]() {
        platform.close()
        await telegram[Symbol.asyncDispose]()
      },
    })
  }

  /** Lines of `config.toml`. Nothing is sent again when it may have arrived: a poll of Telegram has no keys. */
  get config(): string {
    const open = `agent_name = "${AGENT}"\nallowed_users = ["*"]\nrate_limit_per_user = 0\nrate_limit_per_minute = 0\n`
    return `
[channels.webhook]
token = "${SECRET}"
callback_url = "${this.#callback}"
${open}
[channels.telegram]
token = "${this.#telegram.token}"
base_url = "${this.#telegram.origin}"
poll_timeout_secs = 5
${open}
[plugins.channels]
lease_secs = 5
max_attempts = 100
send_retry_min_ms = 20
send_retry_max_ms = 100
resend_uncertain = false
webhook_rate_per_minute = 1000000
[webhook_triggers]
enabled = true
token = "${HOOK_TOKEN}"
deliver_to = ["*"]
rate_limit_per_minute = 100000
`
  }

  async prepare(): Promise<void> {
    this.#webhook = []
    this.#telegrams = []
    this.#hooks = []
    if (this.#isMade) return
    await this.#client.make('/api/agents', 'agent_id', agentOf(AGENT))
    this.#isMade = true
  }

  async run(round: number, signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#repeat(signal, async (n) => {
        const label = `c${round}-${n}-0`
        this.#webhook.push(label)
        await deliver(
          () => this.#client.url,
          `chat-${round}-${n % 2}`,
          label,
          () => false,
          'mark',
        )
      }),
      this.#repeat(signal, async (n) => {
        const label = `g${round}-${n}-0`
        this.#telegrams.push(label)
        await this.#telegram.deliver({ text: `say ${label}` })
      }),
      this.#repeat(signal, async (n) => {
        const label = `h${round}-${n}-0`
        await this.#callHook(label)
      }),
    ])
  }
  async #repeat(signal: AbortSignal, send: (n: number) => Promise<void>): Promise<void> {
    for (let n = 0; !signal.aborted; n++, await delay(PAUSE_MS)) await send(n)
  }
  async #callHook(label: string): Promise<void> {
    const body = {
      message: `mark ${label}`,
      agent: AGENT,
      deliver: true,
      channel: 'webhook',
      recipient: `hook-${label}`,
    }
    const { status, body: answer } = await this.#client.insist('POST', '/api/hooks/agent', body, () => {
      const seconds = Math.floor(Date.now() / 1000)
      const signed = `${label}.${seconds}.${JSON.stringify(body)}`
      return {
        'webhook-id': label,
        'webhook-timestamp': String(seconds),
        'webhook-signature': `v1,${createHmac('sha256', HOOK_TOKEN).update(signed).digest('base64')}`,
      }
    })
    if (status === 200) this.#hooks.push(label)
    // Its turn failed, as the session says.
    else if (isDown(status)) this.figures.inbound_webhooks_failed++
    else this.#client.problem(`the inbound webhook ${label} answered ${status}: ${JSON.stringify(answer)}`)
  }

  async check(): Promise<readonly string[]> {
    const problems: string[] = []
    this.figures.webhook_messages += this.#webhook.length
    this.figures.telegram_messages += this.#telegrams.length
    this.figures.inbound_webhooks += this.#hooks.length
    const answers = (): ReadonlyMap<string, number> => this.#answers()
    const expected = [...this.#webhook, ...this.#hooks]
    await until(() => expected.every((label) => answers().has(label)), SETTLES_MS)
    const came = answers()
    for (const label of expected) {
      const times = came.get(label) ?? 0
      if (times !== 1) problems.push(`${label} was answered ${times} times on the platform`)
    }
    for (const label of [...expected, ...this.#telegrams]) {
      const marks = this.#marks.of(label)
      if (marks > 1) problems.push(`the tool was called ${marks} times for ${label}`)
    }
    problems.push(...(await this.#checkTelegram()))
    return problems
  }
  /** Messages of the platform by what they answer: how many there are under different keys. */
  #answers(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const [text, keys] of this.#platform.answers) {
      const label = /<([chg]\d+-\d+-\d+)>/.exec(text)?.[1] ?? text
      counts.set(label, (counts.get(label) ?? 0) + keys.size)
    }
    return counts
  }
  async #checkTelegram(): Promise<readonly string[]> {
    const timesOf = (label: string): number =>
      this.#telegram.sent.filter(({ text }) => text.includes(`<${label}>`) || text.includes(`&lt;${label}`)).length
    const dead = async (): Promise<number> =>
      (await this.#client.get('/api/channels/telegram/outbox?limit=500')).messages?.length ?? 0
    const unanswered = (): readonly string[] => this.#telegrams.filter((label) => timesOf(label) === 0)
    const before = this.figures.telegram_unanswered
    await until(async () => unanswered().length === 0 || unanswered().length + before <= (await dead()), SETTLES_MS)
    const problems = this.#telegrams.flatMap((label) =>
      timesOf(label) > 1 ? [`${label} was answered ${timesOf(label)} times on Telegram`] : [],
    )
    const lost = unanswered()
    this.figures.telegram_unanswered += lost.length
    if (this.figures.telegram_unanswered > (await dead()))
      problems.push(`Telegram shows no answer to ${lost.join(', ')}, and no dead letter says why`)
    return [...problems, ...this.#telegram.violations.map((violation) => `Telegram was sent ${violation}`)]
  }
}
