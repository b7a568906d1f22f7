import { createHash } from 'node:crypto'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import { PartialSends, runInBackground } from 'svc/channels'
import type {
  ChannelConnection,
  ChannelLink,
  ConnectionEnd,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import { loadBaileys, LOGGED_OUT } from './baileys.ts'
import type { Baileys, ConnectionUpdate, LoadBaileys, Socket, WebMessage } from './baileys.ts'
import type { WhatsAppConfig } from './config.ts'
import { decodeWebMessage, messageOfReference } from './web-decode.ts'
import { WebSession } from './web-session.ts'

type Link = ChannelLink<WhatsAppConfig>

export async function probeWeb(link: Link, load: LoadBaileys = loadBaileys): Promise<{ readonly account: string }> {
  const session = await WebSession.load(await load(), link.secrets)
  if (!session.isLinked) throw notLinked()
  return { account: session.account }
}

/** Connects as the linked device. */
export async function openWeb(link: Link, load: LoadBaileys = loadBaileys): Promise<ChannelConnection> {
  const module = await load()
  const session = await WebSession.load(module, link.secrets)
  if (!session.isLinked) throw notLinked()
  link.signal.throwIfAborted()
  const socket = session.connect()
  const opened = Promise.withResolvers<void>()
  const background = runInBackground(link, async (signal) => {
    try {
      return await runSocket(link, session, socket, signal, opened.resolve)
    } finally {
      opened.reject(signal.reason ?? closedEarly())
      socket.end()
      await session.flush()
    }
  })
  await Promise.race([opened.promise, background.closed.then(failOnEnd)])
  const sender = new WebSender(socket)
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    typing: (to) => socket.sendPresenceUpdate('composing', to.chatId),
    react: (to, id, emoji) => sender.react(to.chatId, id, emoji),
    readAttachment: (reference) => readMedia(module, reference),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** Receives until the connection ends, and tells how it did. */
async function runSocket(
  link: Link,
  session: WebSession,
  socket: Socket,
  signal: AbortSignal,
  opened: () => void,
): Promise<ConnectionEnd> {
  const end = Promise.withResolvers<ConnectionEnd>()
  let receiving = Promise.resolve()
  signal.addEventListener('abort', () => end.resolve({ retry: 'later', reason: 'the connection ended' }))
  socket.ev.on('connection.update', (update) => {
    link.heard()
    if (update.connection === 'open') opened()
    if (update.connection === 'close') end.resolve(endOf(update))
  })
  socket.ev.on('messages.upsert', ({ type, messages }) => {
    link.heard()
    // `append` is history.
    if (type !== 'notify') return
    receiving = receiving
      .then(() => receiveAll(link, messages, socket.user?.id ?? ''))
      .catch((error: unknown) => {
        end.resolve({ retry: 'later', reason: `a message could not be stored: ${String(error)}` })
      })
  })
  const ending = await end.promise
  await receiving
  if (ending.retry === 'never') await session.forget()
  return ending
}

async function receiveAll(link: Link, messages: readonly WebMessage[], ownId: string): Promise<void> {
  for (const raw of messages) {
    const message = decodeWebMessage(raw, ownId)
    if (message) await link.receive(message)
  }
}

async function readMedia(module: Baileys, reference: Readonly<Record<string, unknown>>) {
  return module.downloadMediaMessage(messageOfReference(reference), 'stream', {})
}

/** Sends messages as the linked device. */
class WebSender {
  readonly #socket: Socket
  readonly #partial = new PartialSends()

  constructor(socket: Socket) {
    this.#socket = socket
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { attachments, text } = message
    const steps = attachments.map((attachment, index) => async () => {
      const caption = index === 0 ? text : ''
      return this.#post(message, `${message.id}-${index}`, await contentOf(attachment, caption))
    })
    if (steps.length === 0) steps.push(() => this.#post(message, message.id, { text }))
    return this.#partial.send(message.id, steps)
  }

  async react(chatId: string, id: string, text: string): Promise<void> {
    await this.#socket.sendMessage(chatId, { react: { text, key: { id, remoteJid: chatId, fromMe: false } } })
  }

  async #post(message: OutboundMessage, id: string, content: Readonly<Record<string, unknown>>): Promise<SentMessage> {
    const { to, replyTo } = message
    const quoted = replyTo === undefined ? undefined : quotedOf(replyTo, to.chatId)
    // The same id with every attempt: WhatsApp drops a message that it has.
    const options = omitUndefined({ quoted, messageId: messageIdOf(id) })
    try {
      const sent = await this.#socket.sendMessage(to.chatId, content, options)
      return { id: sent?.key.id ?? options.messageId }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new UpstreamFailure('whatsapp', `whatsapp did not take the message: ${reason}`, {
        reason: 'network',
        retry: 'later',
      })
    }
  }
}

/** As WhatsApp Web makes ids: `3EB0` and 18 hexadecimal digits. */
function messageIdOf(id: string): string {
  return `3EB0${createHash('sha256').update(id).digest('hex').slice(0, 18).toUpperCase()}`
}

function quotedOf(id: string, chatId: string): WebMessage {
  return { key: { id, remoteJid: chatId, fromMe: false }, message: { conversation: '' } }
}

async function contentOf(attachment: OutboundAttachment, caption: string): Promise<Readonly<Record<string, unknown>>> {
  const { kind, mime, name } = attachment
  const bytes = Buffer.from(await attachment.bytes())
  const text = caption === '' ? {} : { caption }
  if (kind === 'file') return { document: bytes, mimetype: mime, fileName: name, ...text }
  return { [kind]: bytes, mimetype: mime, ...text }
}

function endOf({ lastDisconnect }: ConnectionUpdate): ConnectionEnd {
  if (lastDisconnect?.error?.output?.statusCode === LOGGED_OUT)
    return { retry: 'never', reason: 'the phone unlinked this device: link it again with a QR code' }
  return { retry: 'later', reason: 'WhatsApp closed the connection' }
}

function failOnEnd(end: ConnectionEnd): never {
  if (end.retry === 'never') throw notLinked()
  throw new UpstreamFailure('whatsapp', `whatsapp: ${end.reason}`, { reason: 'network', retry: 'later' })
}
function closedEarly(): UpstreamFailure {
  return new UpstreamFailure('whatsapp', 'whatsapp closed the connection', { reason: 'network', retry: 'later' })
}
function notLinked(): UpstreamFailure {
  return new UpstreamFailure('whatsapp', 'whatsapp: no phone is linked: start the QR code and scan it', {
    reason: 'auth',
    retry: 'never',
  })
}
