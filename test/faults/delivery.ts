import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import type { Json } from '../support/json.ts'
import { generator } from './crash.ts'

export interface DeliveryReport {
  readonly messages: number
  readonly kills: number
  readonly seed: number
  /** Answers that the platform was sent again under the same key, and showed once. */
  readonly repeated: number
  readonly problems: readonly string[]
}
interface Options {
  readonly messages: number
  readonly kills: number
  readonly seed: number
  readonly built?: boolean
}

const SECRET = 'the-secret-of-the-delivery-fault'
const CHATS = 20
const RETRY_MS = 15
const MAX_WAIT_MS = 120_000
const sign = (content: string): string => `sha256=${createHmac('sha256', SECRET).update(content).digest('hex')}`

/**
 * A chat platform with one bot: it delivers a message again until it is acknowledged, shows what comes under one key
 * once, and fails now and then: before it shows a message, and after it did.
 */
export class Platform {
  /** By the text of the answer: the keys under which it came. */
  readonly answers = new Map<string, Set<string>>()
  /** By chat, in the order they were shown. */
  readonly shown = new Map<string, string[]>()
  readonly #random: () => number
  readonly #keys = new Set<string>()
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const chance = this.#random()
      if (chance < 0.04) return void response.writeHead(500).end()
      if (chance < 0.06) return void response.destroy()
      this.#show(JSON.parse(Buffer.concat(chunks).toString()) as Json)
      if (chance < 0.1) return void response.destroy()
      response.writeHead(204).end()
    })
  })
  repeated = 0
  constructor(random: () => number) {
    this.#random = random
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/callback`
  }
  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
  #show({ message_id: key, message: text, recipient_id: chat }: Json): void {
    this.answers.set(text, (this.answers.get(text) ?? new Set()).add(key))
    if (this.#keys.has(key)) {
      this.repeated++
      return
    }
    this.#keys.add(key)
    this.shown.set(chat, [...(this.shown.get(chat) ?? []), text])
  }
}

/** Delivers one message of a person as a platform does: the same again until it is acknowledged. */
export async function deliver(
  url: () => string,
  chat: string,
  text: string,
  isOver: () => boolean,
  verb = 'echo',
): Promise<void> {
  const body = JSON.stringify({
    sender_id: chat,
    chat_id: chat,
    message: `${verb} ${text}`,
    metadata: { message_id: text },
  })
  while (!isOver()) {
    try {
      const stamp = String(Date.now())
      const answer = await fetch(`${url()}/api/channels/webhook/webhook`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-webhook-timestamp': stamp,
          'x-webhook-signature': sign(body),
        },
        body,
      })
      await answer.arrayBuffer()
      if (answer.ok) return
    } catch {
      // Killed: it may have been stored or not.
    }
    await delay(RETRY_MS)
  }
}

function findProblems(platform: Platform, expected: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const problems: string[] = []
  const known = new Set([...expected.values()].flat())
  for (const text of known) {
    const keys = platform.answers.get(text)?.size ?? 0
    if (keys !== 1) problems.push(`${text} was answered ${keys} times`)
  }
  for (const text of platform.answers.keys()) if (!known.has(text)) problems.push(`nobody asked for "${text}"`)
  for (const [chat, texts] of expected)
    if (problems.length === 0 && platform.shown.get(chat)?.join() !== texts.join())
      problems.push(`answers in ${chat} overtook each other`)
  return problems
}

/**
 * Kills the daemon at random moments while messages come in and answers go out: between inbox and agent, agent and
 * outbox, outbox and receipt. Every message is answered once, in the order of its chat.
 */
export async function delivery({ messages, kills, seed, built = false }: Options): Promise<DeliveryReport> {
  const random = generator(seed)
  const home = mkdtempSync(join(tmpdir(), 'svc-delivery-'))
  const platform = new Platform(generator(seed + 1))
  writeFileSync(join(home, 'config.toml'), toConfig(await platform.listen()))
  const expected = new Map<string, string[]>()
  for (let n = 0; n < messages; n++) {
    const chat = `chat-${n % CHATS}`
    expected.set(chat, [...(expected.get(chat) ?? []), `${chat}-${n}`])
  }
  let isOver = false
  let daemon = await startDaemon({ home, built })
  try {
    await spawnAgent(daemon)
    const delivering = Promise.all(
      [...expected].map(async ([chat, texts]) => {
        for (const text of texts)
          await deliver(
            () => daemon.url,
            chat,
            text,
            () => isOver,
          )
      }),
    )
    for (let kill = 1; kill <= kills; kill++) {
      await progress(platform, Math.floor((messages * kill) / (kills + 1)))
      await delay(random() * 30)
      await daemon.kill()
      daemon = await startDaemon({ home, built })
    }
    await delivering
    await progress(platform, messages)
    // What comes now would be an answer too many.
    await delay(300)
    return { messages, kills, seed, repeated: platform.repeated, problems: findProblems(platform, expected) }
  } finally {
    isOver = true
    await daemon.kill()
    platform.close()
    rmSync(home, { recursive: true, force: true })
  }
}

/** Settles when so many different answers came, or when it takes too long: then they are counted as they are. */
async function progress(platform: Platform, count: number): Promise<void> {
  for (const began = Date.now(); platform.answers.size < count && Date.now() - began < MAX_WAIT_MS;)
    await delay(RETRY_MS)
}
export async function spawnAgent({ url }: DaemonProcess): Promise<void> {
  const manifest_toml = 'name = "echo"\n[model]\nprovider = "builtin"\nmodel = "offline"\n'
  const answer = await fetch(`${url}/api/agents`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ manifest_toml }),
  })
  if (answer.status !== 201) throw new Error(`the agent was not made: ${answer.status} ${await answer.text()}`)
}

function toConfig(callback: string): string {
  return `
[rate_limit]
tokens_per_minute = 1000000000
[channels.webhook]
token = "${SECRET}"
callback_url = "${callback}"
agent_name = "echo"
allowed_users = ["*"]
rate_limit_per_user = 0
rate_limit_per_minute = 0
[plugins.channels]
max_attempts = 100
send_retry_min_ms = 20
send_retry_max_ms = 100
webhook_rate_per_minute = 1000000
`
}
