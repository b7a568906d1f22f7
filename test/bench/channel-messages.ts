import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Result } from './figures.ts'
import { Home, startSvc } from './processes.ts'

const SECRET = 'the-secret-of-the-channel-figure'
const PER_SECOND = 500
const SECONDS = 10
const CHATS = 100
const TICK_MS = 10
const MAX_WAIT_MS = 60_000
const MAX_TRIES = 5
const sign = (content: string): string => `sha256=${createHmac('sha256', SECRET).update(content).digest('hex')}`
const config = (callback: string): string => `
[channels.webhook]
token = "${SECRET}"
callback_url = "${callback}"
allowed_users = ["*"]
agent_name = "assistant"
rate_limit_per_user = 0
rate_limit_per_minute = 0
[plugins.channels]
webhook_rate_per_minute = 1000000
`

/** Messages through the webhook channel to the built-in model, at a steady rate: none is lost or answered twice. */
export async function channelMessages(): Promise<readonly Result[]> {
  const answers = new Map<string, number>()
  const receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (bytes: Buffer) => {
      body += bytes.toString()
    })
    request.on('end', () => {
      const { message } = JSON.parse(body) as { message: string }
      answers.set(message, (answers.get(message) ?? 0) + 1)
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  using home = new Home(config(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`))
  await using svc = await startSvc(home)
  try {
    const url = `http://127.0.0.1:${svc.port}/api/channels/webhook/webhook`
    const cpuBefore = svc.cpuMs()
    const begun = performance.now()
    const sends: Promise<boolean>[] = []
    const total = PER_SECOND * SECONDS
    while (sends.length < total) {
      const due = Math.min(total, Math.floor(((performance.now() - begun) / 1000) * PER_SECOND))
      while (sends.length < due) sends.push(send(url, sends.length))
      await delay(TICK_MS)
    }
    const accepted = (await Promise.all(sends)).filter(Boolean).length
    const acceptedMs = performance.now() - begun
    for (const until = performance.now() + MAX_WAIT_MS; answers.size < total && performance.now() < until;)
      await delay(TICK_MS)
    const answeredMs = performance.now() - begun
    const cpuMs = (svc.cpuMs() - cpuBefore) / total
    const twice = [...answers.values()].filter((count) => count > 1).length
    return [
      {
        label: `channel: ${total} messages at ${PER_SECOND}/s: ${accepted} accepted, ${answers.size} answered, ${twice} twice`,
        value: `accepted in ${(acceptedMs / 1000).toFixed(1)} s, answered in ${(answeredMs / 1000).toFixed(1)} s, ${cpuMs.toFixed(2)} ms of a core each`,
        floor: '-',
        ratio: '-',
        goal: 'all once, accepted as they come',
        reached: accepted === total && answers.size === total && twice === 0 && acceptedMs < (SECONDS + 1) * 1000,
      },
    ]
  } finally {
    receiver.closeAllConnections()
    receiver.close()
  }
}

async function send(url: string, n: number): Promise<boolean> {
  const chat = `chat-${n % CHATS}`
  const body = JSON.stringify({
    sender_id: chat,
    chat_id: chat,
    message: `echo message ${n}`,
    metadata: { message_id: String(n) },
  })
  const headers = {
    'content-type': 'application/json',
    'x-webhook-timestamp': String(Date.now()),
    'x-webhook-signature': sign(body),
  }
  // As a platform does: what was not acknowledged is delivered again.
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    try {
      const answer = await fetch(url, { method: 'POST', headers, body })
      await answer.arrayBuffer()
      if (answer.ok) return true
    } catch (error) {
      if (tries === MAX_TRIES - 1) throw error
    }
    await delay(TICK_MS)
  }
  return false
}
