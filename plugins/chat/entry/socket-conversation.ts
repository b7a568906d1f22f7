import { omitUndefined } from 'svc/sdk'
import type { Principal, Problem, Socket } from 'svc/sdk'
import type { Uploads } from '../../files/contract.ts'
import { withAttachments } from './attachments.ts'
import type { AttachmentRules } from './attachments.ts'
import { Conversation, isCommand } from './conversation.ts'
import type { CommandDeps } from './conversation.ts'
import type { AcceptedTurn } from '../contract.ts'
import { decodeFrame } from './decode-socket.ts'
import { Coalescer, encodeDelta, encodeError, encodeNotice, encodeSocket } from './encode-socket.ts'
import type { FrameNames } from './encode-socket.ts'
import { explain } from '../turn/failure.ts'
import type { AgentListFeed, ApprovalFeed } from './socket-feeds.ts'

export interface SocketDeps extends CommandDeps {
  readonly uploads: () => Uploads | undefined
  readonly attachmentRules: AttachmentRules
  readonly agentListFeed: AgentListFeed
  readonly approvalFeed: ApprovalFeed
  readonly textFlushMs: number
  readonly textFlushChars: number
  /** Runs what unloading waits for; it never rejects. */
  readonly background: (work: () => Promise<void>) => void
  readonly onDefect: (error: unknown) => void
}

/** One WebSocket of a client: what it says, and what it is told. */
export class SocketConversation {
  readonly #deps: SocketDeps
  readonly #conversation: Conversation
  constructor(deps: SocketDeps, agentId: string, principal: Principal) {
    this.#deps = deps
    this.#conversation = new Conversation(agentId, principal)
  }

  open(socket: Socket): void {
    const { agentListFeed, approvalFeed } = this.#deps
    const { agentId } = this.#conversation
    socket.send(JSON.stringify({ type: 'connected', agent_id: agentId }))
    agentListFeed.add(socket)
    approvalFeed.add(agentId, socket)
  }

  async frame(socket: Socket, raw: string): Promise<void> {
    const [deps, conversation] = [this.#deps, this.#conversation]
    const frame = decodeFrame(raw)
    if (frame.type === 'ping') return socket.send('{"type":"pong"}')
    if (frame.type === 'invalid') return socket.send(encodeError(frame.why, 'invalid_request'))
    try {
      if (isCommand(frame.text)) {
        // Not awaited: a compaction asks a model, and `/stop` must be heard meanwhile.
        if (/^\/compact\b/i.test(frame.text)) deps.background(() => command(deps, socket, conversation, frame.text))
        else await command(deps, socket, conversation, frame.text)
        return
      }
      const { agentId, thinking } = conversation
      const { text, attachments, sessionId } = frame
      const content = attachments?.length
        ? await withAttachments(deps.uploads(), agentId, text, attachments, deps.attachmentRules)
        : { text }
      const turn = await deps.chat.accept({
        agentId,
        ...content,
        entryPoint: 'websocket',
        ...omitUndefined({ sessionId, thinking }),
      })
      // Not awaited, so that `/stop` and further messages are heard while the answer is written.
      deps.background(() => deliver(deps, socket, turn, { turnId: turn.id, messageId: frame.messageId }))
    } catch (error) {
      fail(deps, socket, error)
    }
  }

  refused(socket: Socket, problem: Problem): void {
    socket.send(encodeError(problem.message, problem.code))
  }

  close(socket: Socket): void {
    const { agentListFeed, approvalFeed } = this.#deps
    agentListFeed.remove(socket)
    approvalFeed.remove(this.#conversation.agentId, socket)
  }
}

async function command(deps: SocketDeps, socket: Socket, conversation: Conversation, text: string): Promise<void> {
  try {
    const { runCommand } = await import('./commands.ts')
    const answer = await runCommand(deps, conversation, text)
    if (typeof answer === 'string') socket.send(encodeNotice(answer))
    // Not awaited, as for a message.
    else deps.background(() => deliver(deps, socket, answer, { turnId: answer.id }))
  } catch (error) {
    fail(deps, socket, error)
  }
}

async function deliver(deps: SocketDeps, socket: Socket, turn: AcceptedTurn, names: FrameNames): Promise<void> {
  const send = (delta: string): void => socket.send(encodeDelta(delta))
  const text = new Coalescer({ ms: deps.textFlushMs, chars: deps.textFlushChars, send })
  try {
    for await (const event of turn.events()) {
      if (socket.signal.aborted) return
      if (event.type === 'text') text.add(event.delta)
      else {
        text.flush()
        socket.send(encodeSocket(event, names))
      }
      // A reader that is behind is waited for; meanwhile the text it misses is joined.
      await socket.drained()
    }
  } catch (error) {
    text.flush()
    fail(deps, socket, error, names)
  } finally {
    text.flush()
  }
}

function fail(deps: SocketDeps, socket: Socket, error: unknown, names?: FrameNames): void {
  const known = explain(error)
  if (known === undefined) deps.onDefect(error)
  const code =
    typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
      ? error.code
      : known === undefined
        ? 'internal_error'
        : 'service_unavailable'
  socket.send(encodeError(known ?? 'Internal error', code, names))
}
