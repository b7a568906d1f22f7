import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { MqttClient } from 'mqtt'
import type { IClientOptions, IPublishPacket } from 'mqtt'
import { UpstreamFailure } from 'svc/sdk'
import { runInBackground, toTlsOptions } from 'svc/channels'
import type { Background, ChannelConnection, OutboundMessage, SentMessage } from 'svc/channels'
import type { Link } from './config.ts'
import { decodeMessage, readPayload } from './decode.ts'
import { failureOf } from './errors.ts'
import { isTopic, topicFor } from './topics.ts'
import { MAX_IN_FLIGHT, Unacknowledged } from './unacknowledged.ts'
import { toStream } from './web-socket-stream.ts'

const KEEP_ALIVE_SECS = 60
/** Twice the pings of the client, with time for the answer. */
export const SILENCE_MS = 100_000
const CONNECT_MS = 30_000
const CONFIRM_MS = 30_000
const MAX_PACKET_BYTES = 1_048_576
const PORTS: Readonly<Record<string, number>> = { 'mqtt:': 1883, 'mqtts:': 8883 }

export async function openMqtt(link: Link): Promise<ChannelConnection> {
  const session = new MqttSession(link, await connectTo(link), await optionsOf(link))
  await session.start()
  return session
}

/** A session of its own that the broker forgets: the one of the bot stays as it is. */
export async function probeMqtt(link: Link): Promise<{ readonly account: string }> {
  const { base_url, username } = link.config
  const { will: _will, ...options } = await optionsOf(link)
  const probe = { ...options, clientId: `svc-${randomUUID()}`, clean: true, properties: {} }
  await using session = new MqttSession(link, await connectTo(link), probe)
  await session.connect()
  return { account: `${username ?? 'anonymous'}@${new URL(base_url).host}` }
}

async function connectTo(link: Link): Promise<Duplex> {
  const url = new URL(link.config.base_url)
  const tls = toTlsOptions(link.config)
  if (url.protocol === 'ws:' || url.protocol === 'wss:')
    return toStream(await link.webSocket(url, { protocols: ['mqtt'], tls, maxBytes: MAX_PACKET_BYTES }))
  const connection = await link.connect({
    host: url.hostname,
    port: Number(url.port) || (PORTS[url.protocol] ?? 0),
    ...(url.protocol === 'mqtts:' && { tls }),
  })
  return connection as Socket
}

async function optionsOf({ config, state, accountId }: Link): Promise<IClientOptions> {
  let clientId = config.client_id ?? (await state.read('client_id'))
  if (clientId === undefined) {
    clientId = `svc-${accountId}-${randomUUID()}`
    await state.write('client_id', clientId)
  }
  const { username, token, status_topic } = config
  return {
    clientId,
    clean: false,
    keepalive: KEEP_ALIVE_SECS,
    // The host reconnects.
    reconnectPeriod: 0,
    resubscribe: false,
    connectTimeout: CONNECT_MS,
    manualConnect: true,
    timerVariant: 'native',
    ...(username !== undefined && { username }),
    ...(token !== undefined && { password: token }),
    ...(status_topic !== undefined && {
      will: { topic: status_topic, payload: Buffer.from('offline'), qos: 1, retain: true },
    }),
    ...(config.protocol === 'v5'
      ? {
          protocolVersion: 5,
          properties: {
            sessionExpiryInterval: config.session_expiry_secs,
            receiveMaximum: MAX_IN_FLIGHT,
            maximumPacketSize: MAX_PACKET_BYTES,
          },
        }
      : { protocolVersion: 4 }),
  }
}

class MqttSession implements ChannelConnection {
  readonly closed: ChannelConnection['closed']
  readonly #link: Link
  readonly #client: MqttClient
  readonly #broker: string
  readonly #background: Background
  readonly #unacknowledged: Unacknowledged
  /** Rejects when the connection fails. */
  readonly #lost = Promise.withResolvers<never>()

  constructor(link: Link, stream: Duplex, options: IClientOptions) {
    this.#link = link
    this.#broker = new URL(link.config.base_url).host
    this.#unacknowledged = new Unacknowledged(link.state)
    this.#client = new MqttClient(() => stream, options)
    this.#client.on('packetreceive', () => link.heard())
    this.#client.on('error', (error) => this.#lost.reject(error))
    this.#client.on('disconnect', ({ reasonCode = 0 }) =>
      this.#lost.reject(Object.assign(new Error(`the broker ended it (${reasonCode})`), { code: reasonCode })),
    )
    this.#client.on('close', () => this.#lost.reject(new Error('the connection was closed')))
    // The broker gets its acknowledgement when the callback is called.
    this.#client.handleMessage = (packet, done) => void this.#take(packet, done)
    this.#background = runInBackground(link, (signal) => this.#wait(signal))
    this.closed = this.#background.closed
  }

  async connect(): Promise<void> {
    const connected = new Promise<void>((resolve) => this.#client.once('connect', () => resolve()))
    this.#client.connect()
    await this.#unless(connected, true)
  }

  async start(): Promise<void> {
    const { subscribe_topics, qos, protocol, status_topic } = this.#link.config
    try {
      await this.connect()
      // No retained messages, and none of its own.
      const rules = { qos: qos === 0 ? 0 : 1, ...(protocol === 'v5' && { nl: true, rh: 2 }) } as const
      const granted = await this.#unless(this.#client.subscribeAsync([...subscribe_topics], rules), true)
      for (const { topic, qos: given } of granted)
        if (given >= 128)
          throw failureOf(Object.assign(new Error(`may not listen to ${topic}`), { code: 143 }), this.#broker, true)
      if (status_topic !== undefined) await this.#publish(status_topic, 'online', { retain: true })
    } catch (error) {
      await this[Symbol.asyncDispose]()
      throw error
    }
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { chatId, replyContext = {} } = message.to
    const { config } = this.#link
    const topic =
      typeof replyContext['topic'] === 'string' ? replyContext['topic'] : topicFor(config.publish_topic, chatId)
    if (!isTopic(topic))
      throw failureOf(Object.assign(new Error('that is no topic'), { code: 144 }), this.#broker, false)
    const correlation = replyContext['correlation']
    await this.#publish(topic, message.text, {
      ...(config.protocol === 'v5' && {
        properties: {
          contentType: 'text/plain; charset=utf-8',
          userProperties: { id: message.id },
          ...(typeof correlation === 'string' && { correlationData: Buffer.from(correlation, 'base64') }),
        },
      }),
    })
    return { id: '' }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { status_topic } = this.#link.config
    if (this.#client.connected && status_topic !== undefined && !this.#link.signal.aborted)
      await this.#publish(status_topic, 'offline', { retain: true }).catch((error: unknown) =>
        this.#link.log.debug('the status could not be published', error),
      )
    await this.#background[Symbol.asyncDispose]()
  }

  async #publish(topic: string, text: string, options: Parameters<MqttClient['publishAsync']>[2]): Promise<void> {
    const qos = this.#link.config.qos === 0 ? 0 : 1
    await this.#unless(this.#client.publishAsync(topic, text, { qos, ...options }), false)
  }

  async #take(packet: IPublishPacket, acknowledge: () => void): Promise<void> {
    try {
      await this.#receive(packet)
    } catch (error) {
      return this.#lost.reject(error)
    }
    acknowledge()
  }

  async #receive(packet: IPublishPacket): Promise<void> {
    if (packet.retain) return
    const payload = readPayload(Buffer.from(packet.payload))
    if (!payload) return
    const id = payload.id ?? (await this.#unacknowledged.idOf(packet))
    const { config } = this.#link
    await this.#link.receive(decodeMessage(packet, payload, { id, config, now: this.#link.now() }))
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    if (signal.aborted) return await this.#end(true)
    try {
      await Promise.race([ended, this.#lost.promise])
      await this.#end(false)
    } catch (error) {
      await this.#end(true)
      throw failureOf(error, this.#broker, true)
    }
  }

  async #end(force: boolean): Promise<void> {
    // A client that never connected ends by force only.
    await this.#client.endAsync(force || !this.#client.connected)
  }

  /** The result, unless the connection is lost or it takes too long. */
  async #unless<T>(work: Promise<T>, isConnecting: boolean): Promise<T> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () =>
        late.reject(
          new UpstreamFailure('mqtt', `${this.#broker} did not answer in time`, { reason: 'timeout', retry: 'later' }),
        ),
      CONFIRM_MS,
    )
    try {
      return await Promise.race([work, this.#lost.promise, late.promise])
    } catch (error) {
      throw failureOf(error, this.#broker, isConnecting)
    } finally {
      clearTimeout(timer)
    }
  }
}
