import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startReceiver } from '../plugins/webhooks/receiver.ts'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import { generator } from './crash.ts'

export interface WebhookReport {
  readonly events: number
  readonly kills: number
  readonly received: number
  readonly seed: number
  readonly problems: readonly string[]
}

const json = { 'content-type': 'application/json' }
const SECRET = 'the-secret-of-the-fault'

/**
 * Kills the daemon while it delivers to a receiver that fails now and then: every event arrives, always under the
 * same id, in order.
 */
export async function webhooks(options: {
  readonly events: number
  readonly kills: number
  readonly seed: number
  readonly built?: boolean
}): Promise<WebhookReport> {
  const random = generator(options.seed)
  const home = mkdtempSync(join(tmpdir(), 'svc-webhooks-'))
  const problems: string[] = []
  const receiver = await startReceiver(SECRET)
  receiver.answer = (response) => {
    const chance = random()
    if (chance < 0.1) response.writeHead(500).end()
    else if (chance < 0.15) response.destroy()
    else response.writeHead(204).end()
  }
  const start = (): Promise<DaemonProcess> =>
    startDaemon({
      home,
      built: options.built ?? false,
      env: {
        SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '1000000000',
        SVC_OUTBOUND__ALLOW: '127.0.0.1',
        SVC_PLUGINS__WEBHOOKS__POLL_MS: '50',
        SVC_PLUGINS__WEBHOOKS__BACK_OFF_MIN_MS: '5',
        SVC_PLUGINS__WEBHOOKS__BACK_OFF_MAX_MS: '50',
        SVC_PLUGINS__WEBHOOKS__MAX_ATTEMPTS: '100',
      },
    })
  const names = Array.from({ length: options.events }, (_, n) => `event-${n}`)
  const acknowledged: string[] = []
  let daemon = await start()
  try {
    const made = await fetch(`${daemon.url}/api/webhooks`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ name: 'fault', url: `${receiver.url}/hook`, events: ['agent_spawned'], secret: SECRET }),
    })
    if (made.status !== 201) throw new Error(`subscribing answered ${made.status}: ${await made.text()}`)
    const killEvery = Math.ceil(names.length / (options.kills + 1))
    for (const [n, name] of names.entries()) {
      const sent = fetch(`${daemon.url}/api/agents`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ manifest_toml: `name = "${name}"\n[model]\nprovider = "builtin"\nmodel = "offline"\n` }),
      }).then(
        (answer) => {
          if (answer.status === 201) acknowledged.push(name)
        },
        () => undefined /* killed before it was answered: it may have happened or not */,
      )
      if (n % killEvery === killEvery - 1 && n < names.length - 1) {
        await new Promise((resolve) => {
          setTimeout(resolve, random() * 40)
        })
        await daemon.kill()
        await sent
        daemon = await start()
      } else await sent
    }
    const arrived = (): Set<string> => new Set(receiver.received.map(({ body }) => String(body.data.agent_name)))
    const late = setTimeout(() => problems.push('not everything arrived within a minute'), 60_000)
    while (problems.length === 0 && acknowledged.some((name) => !arrived().has(name)))
      await receiver.count(receiver.received.length + 1)
    clearTimeout(late)
    const ids = new Map<string, Set<string>>()
    for (const { body, raw, genuine, headers } of receiver.received) {
      if (!genuine) problems.push(`a signature is wrong: ${raw}`)
      if (headers['x-webhook-id'] !== body.id) problems.push(`header and body name two ids: ${raw}`)
      ids.set(body.data.agent_name, (ids.get(body.data.agent_name) ?? new Set()).add(body.id))
    }
    for (const [name, found] of ids) if (found.size > 1) problems.push(`${name} came under ${found.size} ids`)
    const order = [...ids.keys()].map((name) => names.indexOf(name))
    if (order.some((position, index) => index > 0 && position < (order[index - 1] ?? 0)))
      problems.push('events overtook each other')
    return {
      events: acknowledged.length,
      kills: options.kills,
      received: receiver.received.length,
      seed: options.seed,
      problems,
    }
  } finally {
    await daemon.kill()
    await receiver[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
}
