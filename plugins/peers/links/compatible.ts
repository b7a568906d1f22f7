import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { isObject } from 'svc/sdk'
import * as v from 'valibot'
import { frame, LINK_BYTES } from '../frames.ts'
import type { FrameCodec } from '../frames.ts'
import { VERSION } from '../handshake.ts'
import type { Link } from '../handshake.ts'
import { LinkRefusal, secretOf } from '../mac.ts'
import { plainText } from '../plain-text.ts'
import type { FrameChannel } from './channel.ts'
import { AgentInfo, readEnvelope } from './envelope.ts'
import { parseJson, refuseOnLink, RefusedByPeer } from './establish.ts'
import type { EstablishDeps, ProvenPeer } from './establish.ts'

// The first form of OFP (API facts, appendix C): two messages, each with a code over the sender's own nonce and id, and
// frames with a code but neither a counter nor a direction. What it lacks is made up for as far as one side can: a link
// counts only when a frame of it has come, which a recorded handshake cannot bring, and no frame is taken twice.

const MAC_CHARS = 64
/** Codes that are remembered of one link; a longer one has to be made anew. */
const MAX_FRAMES = 100_000
/** The first frame may be a message. */
const FIRST_BYTES = 131_072

const greeting = {
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  node_id: v.pipe(v.string(), v.regex(/^[\w.:-]{1,128}$/)),
  node_name: v.pipe(v.string(), v.maxLength(1024)),
  protocol_version: v.number(),
  agents: v.pipe(v.array(AgentInfo), v.maxLength(1_000)),
  nonce: v.pipe(v.string(), v.regex(/^[\w-]{16,128}$/)),
  auth_hmac: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
}
const Handshake = v.object({ type: v.literal('request'), method: v.literal('handshake'), ...greeting })
const Ack = v.object({ type: v.literal('response'), method: v.literal('handshake_ack'), ...greeting })
const ErrorAnswer = v.object({ method: v.literal('error'), code: v.number(), message: v.string() })
type Greeting = v.InferOutput<typeof Handshake> | v.InferOutput<typeof Ack>

/** Answers a call. Throws `LinkRefusal`. */
export async function respondCompatibly(
  channel: FrameChannel,
  deps: EstablishDeps,
  message: unknown,
): Promise<ProvenPeer> {
  const id = isObject(message) && typeof message['id'] === 'string' ? message['id'].slice(0, 128) : randomUUID()
  try {
    if (deps.compatible === undefined)
      throw new LinkRefusal(403, 'This form of the handshake is off here; network.compatible_handshake permits it')
    const theirs = await read(deps, Handshake, message)
    const own = greet(deps, await deps.compatible.agents())
    channel.sendJson({ id: theirs.id, type: 'response', method: 'handshake_ack', ...own })
    return await confirm(channel, deps, { theirs, nonces: [theirs.nonce, own.nonce], role: 'responder' })
  } catch (error) {
    if (error instanceof LinkRefusal) refuse(channel, id, error)
    throw error
  }
}

/** Calls whoever is at the other end, which must be `expected` when it is named. Throws `LinkRefusal`. */
export async function initiateCompatibly(
  channel: FrameChannel,
  deps: EstablishDeps,
  expected: string | undefined,
): Promise<ProvenPeer> {
  // Who answers has proven nothing yet: it is told of no agents.
  const own = greet(deps, [])
  channel.sendJson({ id: randomUUID(), type: 'request', method: 'handshake', ...own })
  const message = parseJson(await channel.next())
  const error = v.safeParse(ErrorAnswer, message)
  if (error.success) throw new RefusedByPeer(error.output.code, error.output.message)
  const theirs = await read(deps, Ack, message)
  if (expected !== undefined && theirs.node_id !== expected)
    throw new LinkRefusal(403, `The node there is ${theirs.node_id}, not ${expected}`)
  deps.checkNode(theirs.node_id)
  return await confirm(channel, deps, { theirs, nonces: [own.nonce, theirs.nonce], role: 'initiator' })
}

function greet({ side, nodeName }: EstablishDeps, agents: readonly AgentInfo[]) {
  const nonce = randomUUID()
  const auth = code(secretOf(side.secret), nonce + side.self)
  return { node_id: side.self, node_name: nodeName, protocol_version: VERSION, agents, nonce, auth_hmac: auth }
}

/** Checks what the other side says of itself. */
async function read<T extends Greeting>(
  deps: EstablishDeps,
  schema: v.GenericSchema<unknown, T>,
  message: unknown,
): Promise<T> {
  if (isObject(message) && typeof message['protocol_version'] === 'number' && message['protocol_version'] !== VERSION)
    throw new LinkRefusal(1, `The peer speaks another version of the protocol; this node speaks ${VERSION}`)
  const parsed = v.safeParse(schema, message)
  if (!parsed.success) throw new LinkRefusal(400, 'The message is not the one that comes here')
  const { node_id: nodeId, nonce, auth_hmac: given } = parsed.output
  const { side, replays } = deps
  if (nodeId === side.self) throw new LinkRefusal(403, 'A node does not call itself')
  if (!isSameCode(code(secretOf(side.secret), nonce + nodeId), given))
    throw new LinkRefusal(403, 'The peer did not prove that it knows the secret')
  const now = side.now()
  if (!replays.take(nonce, now, now) || !(await deps.takeNonce(nonce, now)))
    throw new LinkRefusal(403, 'This handshake was made before')
  return parsed.output
}

interface Greeted {
  readonly theirs: Greeting
  /** That of the side that called is the first. */
  readonly nonces: readonly [string, string]
  readonly role: 'initiator' | 'responder'
}
/** The link counts once a frame has come that only who knows the secret can send on it. */
async function confirm(
  channel: FrameChannel,
  deps: EstablishDeps,
  { theirs, nonces, role }: Greeted,
): Promise<ProvenPeer> {
  const { node_id: nodeId, node_name: nodeName, agents } = theirs
  const codec = new CompatibleCodec(code(secretOf(deps.side.secret), nonces.join('')))
  const link: Link = { peer: nodeId, role, encrypted: false, out: codec, in: codec, transcript: Buffer.alloc(0) }
  const proven: ProvenPeer = { nodeId, nodeName: plainText(nodeName, 128), publicKey: '', agents, link }
  try {
    await readFirst(channel, codec, role === 'initiator' ? 0 : deps.timeoutMs / 4)
    await deps.admit(proven)
  } catch (error) {
    if (error instanceof LinkRefusal) refuseOnLink(channel, link, error)
    throw error
  }
  return proven
}

/** A caller that has nothing to say is asked; one that sends a message at once reads nothing but its answer. */
async function readFirst(channel: FrameChannel, codec: CompatibleCodec, waitMs: number): Promise<void> {
  const ping = Buffer.from(JSON.stringify({ id: randomUUID(), type: 'request', method: 'ping' }))
  const late = setTimeout(() => channel.send(codec.seal(ping)), waitMs)
  channel.raise(FIRST_BYTES)
  try {
    const content = await channel.next()
    const envelope = readEnvelope(parseJson(codec.open(content)))
    channel.raise(LINK_BYTES)
    // The answer to the question above is for nobody else.
    if ('type' in envelope && envelope.type === 'response') return
    codec.forget(content)
    channel.unread(content)
  } finally {
    clearTimeout(late)
  }
}

/** Both directions of a link. */
class CompatibleCodec implements FrameCodec {
  readonly #key: string
  /** Of frames in both directions: none is taken twice, and none that this side sent. */
  readonly #known = new Set<string>()
  constructor(key: string) {
    this.#key = key
  }

  seal(body: Uint8Array): Buffer {
    if (body.byteLength + MAC_CHARS > LINK_BYTES) throw new LinkRefusal(400, `A frame has at most ${LINK_BYTES} bytes`)
    const mac = code(this.#key, body)
    this.#remember(mac)
    return frame(Buffer.concat([body, Buffer.from(mac, 'latin1')]))
  }
  open(content: Buffer): Buffer {
    const body = content.subarray(0, Math.max(0, content.byteLength - MAC_CHARS))
    const given = macOf(content)
    if (!isSameCode(code(this.#key, body), given) || this.#known.has(given))
      throw new LinkRefusal(403, 'A frame is not what the peer sent next')
    this.#remember(given)
    return body
  }
  /** For a frame that was looked at and is read once more. */
  forget(content: Buffer): void {
    this.#known.delete(macOf(content))
  }

  #remember(mac: string): void {
    if (this.#known.size >= MAX_FRAMES)
      throw new LinkRefusal(429, `A link of this form carries at most ${MAX_FRAMES} frames`)
    this.#known.add(mac)
  }
}

const macOf = (content: Buffer): string => content.subarray(-MAC_CHARS).toString('latin1')
const code = (key: string | Buffer, data: string | Uint8Array): string =>
  createHmac('sha256', key).update(data).digest('hex')
function isSameCode(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected, 'latin1'), Buffer.from(given, 'latin1')]
  return one.byteLength === other.byteLength && timingSafeEqual(one, other)
}

function refuse(channel: FrameChannel, id: string, reason: LinkRefusal): void {
  channel.sendJson({ id, type: 'response', method: 'error', code: reason.code, message: reason.message })
  channel.close(reason)
}
