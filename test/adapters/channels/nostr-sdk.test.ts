import { createHash, createHmac, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chacha20 } from '@noble/ciphers/chacha.js'
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js'
import { EventRepository, LogLevel } from '@nostr-relay/common'
import type { Event, Filter } from '@nostr-relay/common'
import { NostrRelay } from '@nostr-relay/core'
import { expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import adapter from '../../../adapters/channels/nostr/adapter.ts'
import { TestLink } from '../../support/platforms/link.ts'

// The relay is @nostr-relay/core. The person on the other side encrypts and signs with @noble alone.

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const hmac = (key: Uint8Array | string, ...parts: readonly (Uint8Array | string)[]): Buffer => {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

interface Person {
  readonly secret: Uint8Array
  readonly key: string
}
const newPerson = (): Person => {
  const secret = secp256k1.utils.randomSecretKey()
  return { secret, key: hex(schnorr.getPublicKey(secret)) }
}

/** The keys of one payload of NIP-44, version 2. */
function keysOf({ secret }: Person, other: string, nonce: Uint8Array) {
  const shared = secp256k1.getSharedSecret(secret, Buffer.from(`02${other}`, 'hex')).subarray(1, 33)
  const conversation = hmac('nip44-v2', shared)
  const blocks: Buffer[] = []
  for (let index = 1; index <= 3; index++)
    blocks.push(hmac(conversation, blocks.at(-1) ?? '', nonce, Uint8Array.of(index)))
  const okm = Buffer.concat(blocks)
  return { cipher: okm.subarray(0, 32), iv: okm.subarray(32, 44), mac: okm.subarray(44, 76) }
}

function encrypt(text: string, person: Person, other: string): string {
  const plain = Buffer.from(text)
  const power = 2 ** Math.ceil(Math.log2(Math.max(plain.length, 32)))
  const chunk = power <= 256 ? 32 : power / 8
  const padded = Buffer.alloc(2 + chunk * Math.ceil(plain.length / chunk))
  padded.writeUInt16BE(plain.length)
  plain.copy(padded, 2)
  const nonce = randomBytes(32)
  const { cipher, iv, mac } = keysOf(person, other, nonce)
  const encrypted = chacha20(cipher, iv, padded)
  return Buffer.concat([Uint8Array.of(2), nonce, encrypted, hmac(mac, nonce, encrypted)]).toString('base64')
}

function decrypt(payload: string, person: Person, other: string): string {
  const bytes = Buffer.from(payload, 'base64')
  const [nonce, encrypted, given] = [bytes.subarray(1, 33), bytes.subarray(33, -32), bytes.subarray(-32)]
  const { cipher, iv, mac } = keysOf(person, other, nonce)
  expect(hmac(mac, nonce, encrypted).equals(given)).toBe(true)
  const padded = Buffer.from(chacha20(cipher, iv, encrypted))
  return padded.subarray(2, 2 + padded.readUInt16BE()).toString()
}

type Unsigned = Omit<Event, 'id' | 'sig'>
function withId(event: Unsigned): Omit<Event, 'sig'> {
  const { pubkey, created_at: time, kind, tags, content } = event
  const id = createHash('sha256')
    .update(JSON.stringify([0, pubkey, time, kind, tags, content]))
    .digest('hex')
  return { ...event, id }
}
function signed(event: Unsigned, { secret }: Person): Event {
  const whole = withId(event)
  return { ...whole, sig: hex(schnorr.sign(Buffer.from(whole.id, 'hex'), secret)) }
}

function wrapped(text: string, author: Person, reader: string): Event {
  const created_at = Math.floor(Date.now() / 1000)
  const rumor = withId({ pubkey: author.key, created_at, kind: 14, tags: [['p', reader]], content: text })
  const content = encrypt(JSON.stringify(rumor), author, reader)
  const seal = signed({ pubkey: author.key, created_at: created_at - 86_400, kind: 13, tags: [], content }, author)
  const once = newPerson()
  const sealed = encrypt(JSON.stringify(seal), once, reader)
  const tags: Event['tags'] = [['p', reader]]
  return signed({ pubkey: once.key, created_at: created_at - 100_000, kind: 1059, tags, content: sealed }, once)
}

class Memory extends EventRepository {
  readonly events: Event[] = []
  isSearchSupported(): boolean {
    return false
  }
  upsert(event: Event) {
    const isDuplicate = this.events.some(({ id }) => id === event.id)
    if (!isDuplicate) this.events.push(event)
    return { isDuplicate }
  }
  find({ kinds, authors, ids, since = 0, until = Infinity, limit = 1000, '#p': readers }: Filter): Event[] {
    return this.events
      .filter(({ id }) => ids?.includes(id) ?? true)
      .filter(({ kind }) => kinds?.includes(kind) ?? true)
      .filter(({ pubkey }) => authors?.includes(pubkey) ?? true)
      .filter(({ created_at: time }) => time >= since && time <= until)
      .filter(
        ({ tags }) => readers === undefined || tags.some(([name, key = '']) => name === 'p' && readers.includes(key)),
      )
      .toSorted((one, other) => other.created_at - one.created_at)
      .slice(0, limit)
  }
  async destroy(): Promise<void> {}
}

async function startRelay() {
  const relay = new NostrRelay(new Memory(), { hostname: '127.0.0.1', logLevel: LogLevel.ERROR })
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    relay.handleConnection(socket as never)
    socket.on('message', (data) => void relay.handleMessage(socket as never, JSON.parse(String(data))))
    socket.on('close', () => relay.handleDisconnect(socket as never))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate()
      await new Promise((resolve) => server.close(resolve))
      await relay.destroy()
    },
  }
}

/** A client that publishes, and collects the wraps for its person. */
async function startClient(url: string, { key }: Person) {
  const socket = new WebSocket(url)
  const wraps: Event[] = []
  socket.on('message', (data) => {
    const [type, , event] = JSON.parse(String(data)) as [string, string, Event]
    // This relay sends new events to every reader.
    if (type === 'EVENT' && event.tags[0]?.[1] === key) wraps.push(event)
  })
  await new Promise((resolve) => socket.once('open', resolve))
  socket.send(JSON.stringify(['REQ', 'mine', { kinds: [1059], '#p': [key] }]))
  return { wraps, publish: (event: Event) => socket.send(JSON.stringify(['EVENT', event])) }
}

it('a person with another implementation talks to the bot over a relay of somebody else', async () => {
  await using relay = await startRelay()
  const [ada, bot] = [newPerson(), newPerson()]
  const config = { token: hex(bot.secret), relays: [relay.url] }
  await using test = new TestLink(adapter, config)
  expect((await adapter.probe(test.link)).account).toMatch(/^npub1/)
  await using connection = await adapter.open(test.link)
  const client = await startClient(relay.url, ada)
  const question = `Grüße 😀 ${'long '.repeat(700)}`
  client.publish(wrapped(question, ada, bot.key))
  const [message] = await test.waitForReceived(1)
  expect(message).toMatchObject({ text: question.trim(), sender: { id: ada.key }, chat: { kind: 'direct' } })

  const outbound = { id: crypto.randomUUID(), to: { chatId: ada.key }, text: 'ä'.repeat(4096), plainText: '' }
  const sent = await connection.send({ ...outbound, attachments: [], replyTo: message?.id ?? '' })
  await expect.poll(() => client.wraps).toHaveLength(1)
  const [wrap] = client.wraps as [Event]
  expect(
    schnorr.verify(Buffer.from(wrap.sig, 'hex'), Buffer.from(wrap.id, 'hex'), Buffer.from(wrap.pubkey, 'hex')),
  ).toBe(true)
  const seal = JSON.parse(decrypt(wrap.content, ada, wrap.pubkey)) as Event
  expect(seal).toMatchObject({ kind: 13, pubkey: bot.key, tags: [] })
  const rumor = JSON.parse(decrypt(seal.content, ada, seal.pubkey)) as Event
  expect(rumor).toMatchObject({ kind: 14, pubkey: bot.key, content: outbound.text, id: sent.id })
  expect(rumor.tags).toContainEqual(['e', message?.id, '', 'reply'])
  expect(withId(rumor).id).toBe(rumor.id)
})
