import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { enforced } from 'svc/internal'
import { FrameSeal } from './frames.ts'
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
const greeting = { version: whole, from: nodeId, to: nodeId, nonce: hex, sent_at: whole, mac: hex }
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
  readonly out: FrameSeal
  readonly in: FrameSeal
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
}

/** Calls `peer`. `accept` reads its answer once and returns the proof to send. Throws `LinkRefusal`. */
export function call(
  side: Side,
  peer: string,
): { readonly hello: Hello; accept(message: unknown): { readonly proof: Proof; readonly link: Link } } {
  const secret = secretOf(side.secret)
  const mine = nonceOf(side)
  const sentAt = side.now()
  const names = [side.self, peer] as const
  const hello: Hello = {
    type: 'hello',
    version: VERSION,
    from: side.self,
    to: peer,
    nonce: mine,
    sent_at: sentAt,
    mac: first(secret, names, mine, sentAt).toString('hex'),
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
      if (side.now() - sentAt > HANDSHAKE_MS) throw new LinkRefusal(403, 'The answer came too late')
      if (!isSame(second(secret, names, [mine, challenge.nonce], challenge.sent_at), Buffer.from(challenge.mac, 'hex')))
        throw new LinkRefusal(403, 'The peer did not prove that it knows the secret')
      const proof: Proof = { type: 'proof', mac: third(secret, names, [mine, challenge.nonce]).toString('hex') }
      return { proof, link: link(secret, names, [mine, challenge.nonce], 'initiator') }
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
): { readonly challenge: Challenge; accept(message: unknown): Link } {
  return counted(() => {
    const secret = secretOf(side.secret)
    const hello = read(Hello, message)
    const names = [hello.from, side.self] as const
    checkParties(hello, { to: side.self })
    if (hello.from === side.self) throw new LinkRefusal(403, 'A node does not call itself')
    const now = side.now()
    checkTime(hello.sent_at, now)
    if (!isSame(first(secret, names, hello.nonce, hello.sent_at), Buffer.from(hello.mac, 'hex')))
      throw new LinkRefusal(403, 'The caller did not prove that it knows the secret')
    // Only now: who cannot prove anything makes this node remember nothing.
    if (!replays.take(hello.nonce, hello.sent_at, now)) throw new LinkRefusal(403, 'This call was made before')
    const mine = nonceOf(side)
    const nonces = [hello.nonce, mine] as const
    const challenge: Challenge = {
      type: 'challenge',
      version: VERSION,
      from: side.self,
      to: hello.from,
      nonce: mine,
      sent_at: now,
      mac: second(secret, names, nonces, now).toString('hex'),
    }
    let used = false
    return {
      challenge,
      accept: counted((given: unknown) => {
        if (used) throw new LinkRefusal(400, 'The proof came already')
        used = true
        const proof = read(Proof, given)
        if (side.now() - now > HANDSHAKE_MS) throw new LinkRefusal(403, 'The proof came too late')
        if (!isSame(third(secret, names, nonces), Buffer.from(proof.mac, 'hex')))
          throw new LinkRefusal(403, 'The caller did not prove that it is there')
        return link(secret, names, nonces, 'responder')
      }),
    }
  })()
}

type Names = readonly [initiator: string, responder: string]
type Nonces = readonly [initiator: string, responder: string]
const version = String(VERSION)
// Each message has its own tag: none can be sent back as another.
const first = (secret: Buffer, names: Names, nonce: string, at: number): Buffer =>
  mac(secret, 'svc-ofp-hs1', version, ...names, nonce, String(at))
const second = (secret: Buffer, names: Names, nonces: Nonces, at: number): Buffer =>
  mac(secret, 'svc-ofp-hs2', version, ...names, ...nonces, String(at))
const third = (secret: Buffer, names: Names, nonces: Nonces): Buffer =>
  mac(secret, 'svc-ofp-hs3', version, ...names, ...nonces)

function link(secret: Buffer, names: Names, nonces: Nonces, side: 'initiator' | 'responder'): Link {
  const salt = Buffer.from(nonces.join(''), 'hex')
  const keys = {
    initiator: derive(secret, salt, `svc-ofp-1 initiator ${names.join(' ')}`),
    responder: derive(secret, salt, `svc-ofp-1 responder ${names.join(' ')}`),
  }
  const other = side === 'initiator' ? 'responder' : 'initiator'
  return {
    peer: side === 'initiator' ? names[1] : names[0],
    out: new FrameSeal(keys[side], side),
    in: new FrameSeal(keys[other], other),
  }
}

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
