import { randomUUID } from 'node:crypto'
import { enforced } from 'svc/internal'
import { isObject, readJson } from 'svc/sdk'
import * as v from 'valibot'
import { LINK_BYTES } from '../frames.ts'
import { answer, call, VERSION } from '../handshake.ts'
import type { Link, Side } from '../handshake.ts'
import { checkIdentity } from '../identity.ts'
import type { Identity } from '../identity.ts'
import type { Target } from '../network/dialer.ts'
import { LinkRefusal } from '../mac.ts'
import { plainText } from '../plain-text.ts'
import type { Replays } from '../replays.ts'
import type { FrameChannel } from './channel.ts'
import type { AgentInfo } from './envelope.ts'

export interface EstablishDeps {
  readonly side: Side
  readonly nodeName: string
  readonly identity: Identity
  /** Milliseconds for all of it. */
  readonly timeoutMs: number
  /** Aborts when this node is to leave: no link opens any more. */
  readonly signal: AbortSignal
  readonly replays: Replays
  /** Whether the nonce of whoever has proven that it knows the secret is new to the other daemons on the database too. */
  readonly takeNonce: (nonce: string, sentAt: number) => Promise<boolean>
  /** Throws when a node shall not be called, such as one that is linked. */
  readonly checkNode: (nodeId: string) => void
  /** Throws `LinkRefusal` for a peer that may not be linked, such as one whose key has changed. */
  readonly admit: (proven: ProvenPeer) => Promise<void>
  /** For the form of the handshake that shows no key and does not encrypt; absent: it is refused. */
  readonly compatible?: { readonly agents: () => Promise<readonly AgentInfo[]> } | undefined
}
/** Who is at the other end of a link, proven. */
export interface ProvenPeer {
  readonly nodeId: string
  readonly nodeName: string
  /** Hexadecimal digits; empty for a node that shows none. */
  readonly publicKey: string
  /** Where it told of them at once. */
  readonly agents?: readonly AgentInfo[]
  readonly link: Link
}

const NodeMessage = v.object({ type: v.literal('node'), version: v.number(), node_id: v.string() })
const ErrorMessage = v.object({ type: v.literal('error'), code: v.number(), message: v.string() })

/** What the other side says before it has proven anything; nobody may rely on it. */
export class RefusedByPeer extends Error {
  override readonly name = 'RefusedByPeer'
  constructor(code: number, message: string) {
    super(`the peer answered ${code}: ${plainText(message, 200)}`)
  }
}

/** Calls the node at the other end, which must be `expected` when it is named. Throws `LinkRefusal`. */
export async function initiate(
  channel: FrameChannel,
  deps: EstablishDeps,
  { nodeId: expected, isCompatible: compatibly }: Pick<Target, 'nodeId' | 'isCompatible'>,
): Promise<ProvenPeer> {
  return await inTime(channel, deps, async () => {
    if (compatibly) return await (await import('./compatible.ts')).initiateCompatibly(channel, deps, expected)
    const peer = expected ?? (await askNodeId(channel))
    deps.checkNode(peer)
    const calling = call(deps.side, peer)
    channel.sendJson(calling.hello)
    const { proof, link } = calling.accept(await readMessage(channel))
    channel.sendJson(proof)
    return await identify(channel, deps, link)
  })
}

/** Answers whoever calls. Throws `LinkRefusal`. */
export async function respond(channel: FrameChannel, deps: EstablishDeps): Promise<ProvenPeer> {
  return await inTime(channel, deps, async () => {
    let message = await readMessage(channel)
    if (isObject(message) && message['type'] === 'who') {
      // Known by name only to be proven later: who calls has to name whom it calls.
      channel.sendJson({ type: 'node', version: VERSION, node_id: deps.side.self })
      message = await readMessage(channel)
    }
    if (isObject(message) && message['method'] === 'handshake')
      return await (await import('./compatible.ts')).respondCompatibly(channel, deps, message)
    if (isObject(message) && typeof message['type'] === 'string' && ENVELOPES.has(message['type']))
      throw new LinkRefusal(401, 'The handshake comes first')
    const answering = answer(deps.side, deps.replays, message)
    if (!(await deps.takeNonce(answering.nonce, answering.sentAt))) {
      enforced('ofp_hmac_auth')
      throw new LinkRefusal(403, 'This call was made before')
    }
    channel.sendJson(answering.challenge)
    return await identify(channel, deps, answering.accept(await readMessage(channel)))
  })
}
const ENVELOPES: ReadonlySet<string> = new Set(['request', 'response', 'notification'])

async function askNodeId(channel: FrameChannel): Promise<string> {
  channel.sendJson({ type: 'who', version: VERSION })
  const message = v.safeParse(NodeMessage, await readMessage(channel))
  if (!message.success) throw new LinkRefusal(400, 'What listens there does not say which node it is')
  return message.output.node_id
}

/** Both sides show their key, on the sealed link; the link counts once both are accepted. */
async function identify(channel: FrameChannel, deps: EstablishDeps, link: Link): Promise<ProvenPeer> {
  // It knows the secret. The other side may be done before this one, and send what it has to say.
  channel.raise(LINK_BYTES)
  const own = deps.identity.prove(link, deps.nodeName)
  channel.send(link.out.seal(Buffer.from(JSON.stringify(own))))
  const given = parseJson(link.in.open(await channel.next()))
  const { publicKey, nodeName } = checkIdentity(link, given)
  const proven: ProvenPeer = { nodeId: link.peer, nodeName, publicKey, link }
  try {
    await deps.admit(proven)
  } catch (error) {
    // The other side counts the link as open: it is told on the link.
    if (error instanceof LinkRefusal) refuseOnLink(channel, link, error)
    throw error
  }
  return proven
}

/** Ends an open link with the reason, which only the other side can read. */
export function refuseOnLink(channel: FrameChannel, link: Link, reason: LinkRefusal): void {
  const { code, message } = reason
  const envelope = { id: randomUUID(), type: 'response', method: 'error', code, message }
  channel.send(link.out.seal(Buffer.from(JSON.stringify(envelope))))
  channel.close(reason)
}

async function readMessage(channel: FrameChannel): Promise<unknown> {
  const message = parseJson(await channel.next())
  const error = v.safeParse(ErrorMessage, message)
  if (error.success) throw new RefusedByPeer(error.output.code, error.output.message)
  return message
}
export function parseJson(bytes: Buffer): unknown {
  try {
    return readJson(bytes.toString('utf8'))
  } catch (error) {
    throw new LinkRefusal(400, 'A frame is no JSON', { cause: error })
  }
}

async function inTime<T>(
  channel: FrameChannel,
  { timeoutMs, signal }: EstablishDeps,
  work: () => Promise<T>,
): Promise<T> {
  const leave = (): void => channel.destroy(new Error('this node is shutting down'))
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  const late = setTimeout(
    () => channel.destroy(new LinkRefusal(408, `The handshake did not end within ${timeoutMs} ms`)),
    timeoutMs,
  )
  try {
    return await work()
  } catch (error) {
    if (error instanceof LinkRefusal) channel.refuse(error)
    throw error
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', leave)
  }
}
