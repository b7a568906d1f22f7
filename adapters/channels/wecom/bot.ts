import * as v from 'valibot'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ChannelConnection, ChannelLink, JsonObject } from 'svc/channels'
import { decodeBotMessage } from './bot-decode.ts'
import { BotSender } from './bot-sender.ts'
import { BotSocket } from './bot-socket.ts'
import { decryptFile } from './cipher.ts'
import type { WeComConfig } from './config.ts'
import { BotMessage } from './wire.ts'

type Link = ChannelLink<WeComConfig>

const STREAM_IDLE_MS = 30_000
const Reference = v.object({ url: v.pipe(v.string(), v.regex(/^https?:\/\//i)), key: v.optional(v.string()) })

export async function openBot(link: Link): Promise<ChannelConnection> {
  const socket = new BotSocket(link, (body, reqId) => receive(link, body, reqId))
  const { bot_id: botId = '', token: secret, base_url: base = 'wss://openws.work.weixin.qq.com' } = link.config
  await socket.open(trimSlashes(base).replace(/^http/i, 'ws'), { botId, secret })
  const sender = new BotSender(socket)
  const files = new ApiClient(link, { system: 'wecom', secrets: [secret] })
  return {
    closed: socket.closed,
    send: (message) => sender.send(message),
    readAttachment: (reference, signal) => readFile(files, reference, signal),
    [Symbol.asyncDispose]: () => socket.close(),
  }
}

export async function probeBot(link: Link): Promise<{ readonly account: string }> {
  const connection = await openBot(link)
  await connection[Symbol.asyncDispose]()
  return { account: link.config.bot_id ?? '' }
}

async function receive(link: Link, body: unknown, reqId: string): Promise<void> {
  const message = v.safeParse(BotMessage, body)
  if (!message.success) {
    link.log.warn('WeCom sent a message in a form that cannot be read')
    return
  }
  const { aibotid: bot } = message.output
  if (bot && bot !== link.config.bot_id) {
    link.log.warn('WeCom sent a message to another robot', { bot })
    return
  }
  const decoded = decodeBotMessage(message.output, reqId, link.now())
  if (decoded) await link.receive(decoded)
}

/** Files are at temporary addresses that need no credentials, and encrypted with a key of their own. */
async function readFile(
  files: ApiClient,
  reference: JsonObject,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { url, key } = v.parse(Reference, reference)
  const response = await files.open(url, { signal, headers: { accept: '*/*' }, streamIdleMs: STREAM_IDLE_MS })
  return key === undefined ? response.chunks() : decryptFile(response.chunks(), key)
}
