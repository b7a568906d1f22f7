import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { enforced } from 'svc/internal'
import { FrameCipher } from './cipher.ts'
import { FrameSeal } from './frames.ts'
import type { FrameCodec } from './frames.ts'
import { Ephemeral } from './key-exchange.ts'
import { derive, isSame, LinkRefusal, mac, secretOf } from './mac.ts'
import { WINDOW_MS } from './replays.ts'
import type { Replays } from './replays.ts'

export const VERSION = 1
/** From the first message to the proof. */
export const HANDSHAKE_MS = 10_000
const NONCE_BYTES = 32

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))
const nodeId = v.pipe(v.string(), v.regex(/^[\w.:-]{1,128}$/))
const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
/** `ephemeral`: the offer to encrypt. The code covers it, so nobody on the way can take it out or change it. */
const greeting = {
  version: whole,
  from: nodeId,
  to: nodeId,
  nonce: hex,
  sent_at: whole,
  ephemeral: v.optional(hex),
  mac: hex,
}
/** The first message: caller, target, time and nonce, authenticated with the secret. */
export const Hello = v.strictObject({ type: v.literal('hello'), ...greeting })
export type Hello = v.InferOutput<typeof Hello>
/** The answer, bound to the nonce it answers. */
export const Challenge = v.strictObject({ type: v.literal('challenge'), ...greeting })
export type Challenge = v.InferOutput<typeof Challenge>
/** The caller's proof that it is there now. */
export const Proof = v.strictObject({ type: v.literal('proof'), mac: hex })
export type Proof = v.InferOutput<typeof Proof>

/** A link that is proven both ways. */
export interface Link {
  readonly peer: string
  readonly role: 'initiator' | 'responder'
  /** What is sent can be read by the two sides only. */
  readonly encrypted: boolean
  readonly out: FrameCodec
  readonly in: FrameCodec
  /** 32 bytes that stand for everything both sides said. */
  readonly transcript: Buffer
}
export interface Side {
  /** At least 32 bytes. */
  readonly secret: string
  /** This node. */
  readonly self: string
  /** Wall clock in milliseconds: both sides compare it. */
  now(): number
  /** 32 random bytes. */
  nonce?(): Buffer
  /** `required` refuses a peer that does not encrypt; `offered` encrypts if the peer does. Default: `off`. */
  readonly encryption?: 'required' | 'offered' | 'off'
}

/** Calls `peer`. `accept` reads its answer once and returns the proof to send. Throws `LinkRefusal`. */
export function call(
  side: Side,
  peer: string,
): { readonly hello: Hello; accept(message: unknown): { readonly proof: Proof; readonly link: Link } } {
  const secret = secretOf(side.secret)
  const own = ephemeralOf(side)
  const mine: Greeting = { nonce: nonceOf(side), sentAt: side.now(), ephemeral: own?.publicKey }
  const names = [side.self, peer] as const
  const hello: Hello = {
    type: 'hello',
    version: VERSION,
    from: side.self,
    to: peer,
    ...toWire(mine),
    mac: first(secret, names, mine).toString('hex'),
  }
  let used = false
  return {
    hello,
    accept: counted((message) => {
      if (used) throw new LinkRefusal(400, 'The answer came already')
      used = true
      const challenge = read(Challenge, message)
      checkParties(challenge, { from: peer, to: side.self })
      checkTime(challenge.sent_at, side.now())
      if (side.now() - mine.sentAt > HANDSHAKE_MS) throw new LinkRefusal(403, 'The answer came too late')
      const said: Said = { names, initiator: mine, responder: fromWire(challenge) }
      if (!isSame(second(secret, said), Buffer.from(challenge.mac, 'hex')))
        throw new LinkRefusal(403, 'The peer did not prove that it knows the secret')
      checkEncryption(side, challenge.ephemeral)
      const shared = own && challenge.ephemeral !== undefined ? own.agree(challenge.ephemeral) : undefined
      const proof: Proof = { type: 'proof', mac: third(secret, said).toString('hex') }
      return { proof, link: link(secret, said, shared, 'initiator') }
    }),
  }
}

/**
 * Answers a call. `accept` reads the proof once. `replays` is shared by all calls of this node. Throws `LinkRefusal`.
 */
export function answer(
  side: Side,
  replays: Replays,
  message: unknown,
): {
  readonly challenge: Challenge
  /** That of the caller, with its time: `replays` knows it, the other daemons on a database may know it too. */
  readonly nonce: string
  readonly sentAt: number
  accept(message: unknown): Link
} {
  return counted(() => {
    const secret = secretOf(side.secret)
    const hello = read(Hello, message)
    const names = [hello.from, side.self] as const
    const theirs = fromWire(hello)
    checkParties(hello, { to: side.self })
    if (hello.from === side.self) throw new LinkRefusal(403, 'A node does not call itself')
    const now = side.now()
    checkTime(hello.sent_at, now)
    if (!isSame(first(secret, names, theirs), Buffer.from(hello.mac, 'hex')))
      throw new LinkRefusal(403, 'The caller did not prove that it knows the secret')
    // Only now: who cannot prove anything makes this node remember nothing.
    if (!replays.take(hello.nonce, hello.sent_at, now)) throw new LinkRefusal(403, 'This call was made before')
    checkEncryption(side, hello.ephemeral)
    const own = hello.ephemeral === undefined ? undefined : ephemeralOf(side)
    const shared = own && hello.ephemeral !== undefined ? own.agree(hello.ephemeral) : undefined
    const mine: Greeting = { nonce: nonceOf(side), sentAt: now, ephemeral: own?.publicKey }
    const said: Said = { names, initiator: theirs, responder: mine }
    const challenge: Challenge = {
      type: 'challenge',
      version: VERSION,
      from: side.self,
      to: hello.from,
      ...toWire(mine),
      mac: second(secret, said).toString('hex'),
    }
    let used = false
    return {
      challenge,
      nonce: hello.nonce,
      sentAt: hello.sent_at,
      accept: counted((given: unknown) => {
        if (used) throw new LinkRefusal(400, 'The proof came already')
        used = true
        const proof = read(Proof, given)
        if (side.now() - now > HANDSHAKE_MS) throw new LinkRefusal(403, 'The proof came too late')
        if (!isSame(third(secret, said), Buffer.from(proof.mac, 'hex')))
          throw new LinkRefusal(403, 'The caller did not prove that it is there')
        return link(secret, said, shared, 'responder')
      }),
    }
  })()
}

type Names = readonly [initiator: string, responder: string]
/** What one side says of itself. */
interface Greeting {
  readonly nonce: string
  readonly sentAt: number
  readonly ephemeral: string | undefined
}
/** What both sides said before the proof. */
interface Said {
  readonly names: Names
  readonly initiator: Greeting
  readonly responder: Greeting
}
const version = String(VERSION)
const partsOf = ({ nonce, sentAt, ephemeral = '' }: Greeting): readonly string[] => [nonce, String(sentAt), ephemeral]
// Each message has its own tag: none can be sent back as another.
const first = (secret: Buffer, names: Names, mine: Greeting): Buffer =>
  mac(secret, 'svc-ofp-hs1', version, ...names, ...partsOf(mine))
const second = (secret: Buffer, said: Said): Buffer => mac(secret, 'svc-ofp-hs2', version, ...allOf(said))
const third = (secret: Buffer, said: Said): Buffer => mac(secret, 'svc-ofp-hs3', version, ...allOf(said))
const allOf = ({ names, initiator, responder }: Said): readonly string[] => [
  ...names,
  ...partsOf(initiator),
  ...partsOf(responder),
]

function link(secret: Buffer, said: Said, shared: Buffer | undefined, role: Link['role']): Link {
  const transcript = mac(secret, 'svc-ofp-transcript', version, ...allOf(said))
  const kind = shared ? 'encrypted' : 'plain'
  const material = shared ? Buffer.concat([shared, secret]) : secret
  const keyOf = (direction: Link['role']): Buffer =>
    derive(material, transcript, `svc-ofp-1 ${kind} ${direction} ${said.names.join(' ')}`)
  const codec = (direction: Link['role']): FrameCodec =>
    shared ? new FrameCipher(keyOf(direction), direction) : new FrameSeal(keyOf(direction), direction)
  return {
    peer: role === 'initiator' ? said.names[1] : said.names[0],
    role,
    encrypted: shared !== undefined,
    out: codec(role),
    in: codec(role === 'initiator' ? 'responder' : 'initiator'),
    transcript,
  }
}

function ephemeralOf({ encryption = 'off' }: Side): Ephemeral | undefined {
  return encryption === 'off' ? undefined : new Ephemeral()
}
function checkEncryption({ encryption }: Side, offered: string | undefined): void {
  if (encryption === 'required' && offered === undefined)
    throw new LinkRefusal(403, 'The peer does not encrypt; network.allow_unencrypted would permit that')
}
const toWire = ({ nonce, sentAt, ephemeral }: Greeting) => ({
  nonce,
  sent_at: sentAt,
  ...(ephemeral !== undefined && { ephemeral }),
})
const fromWire = ({ nonce, sent_at: sentAt, ephemeral }: Hello | Challenge): Greeting => ({ nonce, sentAt, ephemeral })

function nonceOf(side: Side): string {
  return (side.nonce?.() ?? randomBytes(NONCE_BYTES)).toString('hex')
}

function read<T>(schema: v.GenericSchema<unknown, T>, message: unknown): T {
  if (typeof message === 'object' && message !== null && 'version' in message && message.version !== VERSION)
    throw new LinkRefusal(1, `The peer speaks another version of the protocol; this node speaks ${VERSION}`)
  const parsed = v.safeParse(schema, message)
  if (!parsed.success) throw new LinkRefusal(400, 'The message is not the one that comes here')
  return parsed.output
}

function checkParties(
  message: { readonly from: string; readonly to: string },
  expected: { readonly from?: string; readonly to: string },
): void {
  if (message.to !== expected.to || (expected.from !== undefined && message.from !== expected.from))
    throw new LinkRefusal(403, 'The message is meant for, or comes from, another node')
}

function checkTime(sentAt: number, now: number): void {
  if (Math.abs(now - sentAt) > WINDOW_MS)
    throw new LinkRefusal(403, `The clocks differ by more than ${WINDOW_MS / 1000} s`)
}

/** The operator sees refusals. */
function counted<A extends readonly unknown[], T>(work: (...given: A) => T): (...given: A) => T {
  return (...given) => {
    try {
      return work(...given)
    } catch (error) {
      if (error instanceof LinkRefusal) enforced('ofp_hmac_auth')
      throw error
    }
  }
}
