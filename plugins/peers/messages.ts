import { nextHop } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { ErrorCode } from 'svc/sdk'
import { LinkLost, NoAnswer } from './links/link.ts'
import { PeerError } from './links/envelope.ts'
import type { RequestBody, Response } from './links/envelope.ts'
import type { Askable } from './network/shared-links.ts'
import type { Runtime } from './runtime.ts'

/** A message to an agent of another node. */
export interface OutgoingMessage {
  /** The same for each attempt: the other node answers it once. */
  readonly id: string
  /** Id or name of the node. */
  readonly peer: string
  /** Id or name of the agent there. */
  readonly agent: string
  readonly text: string
  /** The agent that sends it. */
  readonly sender?: string | undefined
  /** Daemons that the turn of the sender came through. */
  readonly hops?: number | undefined
}

/**
 * Sends a message and waits for the answer. While the node is away it waits for it, and sends the message again with
 * the same id: the other node makes one turn of it. Throws `Refusal`.
 */
export async function sendMessage(runtime: Runtime, message: OutgoingMessage, signal: AbortSignal): Promise<string> {
  const { max_message_bytes: max, message_timeout_secs: seconds } = runtime.settings
  const bytes = Buffer.byteLength(message.text)
  if (bytes > max)
    throw new Refusal('payload_too_large', `The message has ${bytes} bytes; network.max_message_bytes allows ${max}`)
  const { id, peer, agent, text, sender } = message
  const hops = nextHop(message.hops, runtime.hopLimit)
  const body: RequestBody = { method: 'agent_message', agent, message: text, hops, ...omitUndefined({ sender }) }
  const response = await ask(runtime, peer, { body, id, timeoutMs: seconds * 1000, signal })
  if (response.method !== 'agent_response') throw unexpected(peer)
  checkAnswer(runtime, peer, response.text)
  return response.text
}

function checkAnswer({ settings: { max_answer_bytes: max } }: Runtime, peer: string, text: string): void {
  const bytes = Buffer.byteLength(text)
  if (bytes <= max) return
  const problem = `The answer of node "${peer}" has ${bytes} bytes; network.max_answer_bytes allows ${max}`
  throw new Refusal('payload_too_large', problem)
}

/** How long the node takes to answer, in milliseconds, and how long it runs. */
export async function ping(runtime: Runtime, peer: string, signal: AbortSignal) {
  const { ping_timeout_ms: timeoutMs } = runtime.settings
  const link = await findLink(runtime, peer)
  const startedAt = performance.now()
  const response = await link.request({ method: 'ping' }, { timeoutMs, signal }).catch((error: unknown) => {
    throw toRefusal(peer, error, 'network.ping_timeout_ms')
  })
  if (response.method !== 'pong') throw unexpected(peer)
  return { latencyMs: Math.round((performance.now() - startedAt) * 100) / 100, uptimeSecs: response.uptime_secs }
}

/** The node by id or name, linked here or with another daemon on the database. Throws when it is not linked. */
export async function findLink(runtime: Runtime, peer: string): Promise<Askable> {
  const nodeId = await resolveNode(runtime, peer)
  const link = linkOf(runtime, nodeId)
  if (link) return link
  throw new Refusal('service_unavailable', `Node "${peer}" is not linked now${whyNotLinked(runtime, nodeId)}`)
}
function linkOf(runtime: Runtime, nodeId: string): Askable | undefined {
  return runtime.require().links.find(nodeId) ?? runtime.shared?.at(nodeId)
}
/** What keeps an entry of `network.peers` from being linked, such as a key that changed. */
function whyNotLinked(runtime: Runtime, nodeId: string): string {
  const problem = runtime.require().dialers.find(({ target }) => target.nodeId === nodeId)?.problem
  return problem === undefined ? '' : `: ${problem}`
}

interface Question {
  readonly body: RequestBody
  readonly id: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}
async function ask(runtime: Runtime, peer: string, { body, id, timeoutMs, signal }: Question): Promise<Response> {
  const endAt = performance.now() + timeoutMs
  await runtime.ready(signal)
  const nodeId = await resolveNode(runtime, peer)
  for (;;) {
    const link = await waitForLink(runtime, nodeId, signal)
    try {
      return await link.request(body, { id, signal, timeoutMs: Math.max(1, endAt - performance.now()) })
    } catch (error) {
      // Whether the other node got it is not known; it tells a second time from the first.
      if (!(error instanceof LinkLost)) throw toRefusal(peer, error, 'network.message_timeout_secs')
    }
  }
}

async function waitForLink(runtime: Runtime, nodeId: string, signal: AbortSignal): Promise<Askable> {
  const { links, dialers } = runtime.require()
  const link = linkOf(runtime, nodeId)
  if (link) return link
  const seconds = runtime.settings.connect_wait_secs
  for (const dialer of dialers) dialer.hurry()
  const arrived = new AbortController()
  const ends = AbortSignal.any([signal, arrived.signal, AbortSignal.timeout(seconds * 1000)])
  try {
    const elsewhere = runtime.shared?.arrival(nodeId, ends)
    return await Promise.race([links.arrival(nodeId, ends), ...(elsewhere ? [elsewhere] : [])])
  } catch (error) {
    if (signal.aborted) throw error
    throw new Refusal(
      'service_unavailable',
      `Node "${nodeId}" was not linked within ${seconds} s (network.connect_wait_secs)${whyNotLinked(runtime, nodeId)}`,
      { cause: error },
    )
  } finally {
    arrived.abort()
  }
}

/**
 * The id of a node that was linked before, by its id or its name, or that the configuration names. Throws
 * `Refusal('not_found')`.
 */
export async function resolveNode(runtime: Runtime, peer: string): Promise<string> {
  const found = await runtime.resolve(peer)
  if (found) return found.node_id
  if (runtime.require().dialers.some(({ target }) => target.nodeId === peer)) return peer
  const names = (await runtime.pins.list()).map(({ node_id: id }) => id).slice(0, 20)
  const hint = names.length === 0 ? 'no node was ever linked' : `there are: ${names.join(', ')}`
  throw new Refusal('not_found', `There is no node "${peer}"; ${hint}`)
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  403: 'forbidden',
  404: 'agent_not_found',
  409: 'conflict',
  413: 'payload_too_large',
  429: 'rate_limit',
}
function toRefusal(peer: string, error: unknown, timeoutKey: string): unknown {
  if (error instanceof NoAnswer)
    return new Refusal('service_unavailable', `Node "${peer}" did not answer in time (${timeoutKey})`)
  if (error instanceof LinkLost) return new Refusal('service_unavailable', `The link to node "${peer}" ended`)
  if (!(error instanceof PeerError)) return error
  const text = `Node "${peer}" answered ${error.code}: ${error.message.slice(0, 1000)}`
  return new Refusal(CODES[error.code] ?? 'service_unavailable', text, { cause: error })
}
const unexpected = (peer: string): Refusal =>
  new Refusal('service_unavailable', `Node "${peer}" answered what nobody asked for`)
