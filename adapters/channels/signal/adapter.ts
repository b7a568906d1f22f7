import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, OutboundMessage, SentMessage } from 'svc/channels'
import type { Outgoing, SignalApi } from './api.ts'
import { SignalConfig } from './config.ts'
import type { Link } from './config.ts'
import { SignalDaemon } from './daemon.ts'
import { addressOf, decodeRef, encodeFile, encodeRef, toQuote } from './encode.ts'
import { SignalReceiver } from './receiver.ts'
import { SignalRest } from './rest.ts'

const Reference = v.object({ id: v.pipe(v.string(), v.regex(/^(?!\.)[\w.-]{1,255}$/)), chatId: v.string() })
const ReplyContext = v.object({ quote: v.string() })

const apiOf = (link: Link): SignalApi =>
  link.config.server === 'signal-cli' ? new SignalDaemon(link) : new SignalRest(link)

async function open(link: Link): Promise<ChannelConnection> {
  const api = apiOf(link)
  await api.check()
  const receiver = await SignalReceiver.open(link)
  const background = await api.listen((event) => receiver.receive(event))
  return {
    closed: background.closed,
    send: (message) => send(link, api, message),
    delete: async (sent, to) => api.delete(addressOf(to), decodeRef(sent.id).timestamp),
    typing: (to) => api.typing(addressOf(to)),
    react: async (to, messageId, emoji) => api.react(addressOf(to), decodeRef(messageId), emoji),
    readAttachment: async (reference, signal) => api.readFile(v.parse(Reference, reference), signal),
    warnings: () => receiver.warnings(),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** Texts and files go in one message. */
async function send(link: Link, api: SignalApi, message: OutboundMessage): Promise<SentMessage> {
  const timestamp = await api.send(await encode(api, message))
  return { id: encodeRef({ timestamp, author: link.config.number }) }
}

async function encode(api: SignalApi, { to, text, attachments, replyTo }: OutboundMessage): Promise<Outgoing> {
  const files: string[] = []
  for (const { mime, name, bytes } of attachments) files.push(encodeFile(mime, api.fileName(name), await bytes()))
  const context = v.safeParse(ReplyContext, to.replyContext)
  const quoted = context.success ? toQuote(context.output.quote) : ''
  const quote = replyTo === undefined ? undefined : { ...decodeRef(replyTo), text: quoted }
  return { to: addressOf(to), text, files, ...(quote && { quote }) }
}

export default defineAdapter({
  config: SignalConfig,
  capabilities: {
    dialect: 'plain',
    // What is longer, signal-cli sends as a file.
    maxLength: 2000,
    lengthUnit: 'bytes',
    // The indicator is shown for 15 seconds.
    typing: { repeatMs: 10_000 },
    replies: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 20_000_000 },
    idempotentSend: false,
    // Signal names no numbers: bots that send more are asked for a captcha.
    rate: { overall: { perSecond: 1, burst: 5 } },
  },
  silenceMs: 120_000,
  open,
  async probe(link) {
    await apiOf(link).check()
    return { account: link.config.number }
  },
})
