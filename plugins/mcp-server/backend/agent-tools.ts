import { v7 } from 'uuid'
import * as v from 'valibot'
import { stableId } from 'svc/internal'
import { parse, Refusal } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { AcceptedTurn, Chat, TurnEvent } from '../../chat/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { McpObject } from '../contract.ts'
import type { McpCall } from './backend.ts'

export interface AgentToolDeps {
  readonly chat: Chat
  readonly sessions: Sessions
  readonly progressMs: number
  readonly progressChars: number
  readonly now: () => number
  /** The daemon or the plugin stops: the turn goes on, and only its client stops waiting. */
  readonly isStopping: () => boolean
}
const Input = v.object({
  message: v.pipe(v.string(), v.minLength(1)),
  session_id: v.optional(v.pipe(v.string(), v.uuid('must be the id of a session'))),
})

export function agentTool(name: string, agent: Agent): McpObject {
  return {
    name,
    title: agent.name,
    description: `Send a message to the agent ${agent.name} and get its answer.${
      agent.manifest.description === '' ? '' : ` ${agent.manifest.description}`
    }`,
    inputSchema: {
      type: 'object',
      properties: {
        message: { type: 'string', minLength: 1, description: 'What the agent is told.' },
        session_id: {
          type: 'string',
          format: 'uuid',
          description: 'A conversation of the agent to go on with; that of this client when absent.',
        },
      },
      required: ['message'],
    },
    outputSchema: {
      type: 'object',
      properties: { text: { type: 'string' }, session_id: { type: 'string' }, turn_id: { type: 'string' } },
      required: ['text', 'session_id', 'turn_id'],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  }
}

/** A message to an agent is a durable turn; cancelling the call cancels it. */
export async function callAgent(deps: AgentToolDeps, agent: Agent, args: unknown, call: McpCall): Promise<McpObject> {
  const { message, session_id: named } = parse(Input, args, 'arguments')
  const turn = await deps.chat.accept({
    id: v7(),
    agentId: agent.id,
    sessionId: await sessionOf(deps.sessions, agent, named, call),
    text: message,
    entryPoint: 'mcp',
    hops: call.hops,
  })
  const cancel = (): void => {
    if (!deps.isStopping()) turn.cancel()
  }
  call.signal.addEventListener('abort', cancel, { once: true })
  if (call.signal.aborted) cancel()
  try {
    await report(deps, turn, call)
    const { text, stop } = await turn.result()
    return {
      content: [{ type: 'text', text }],
      structuredContent: { text, session_id: turn.sessionId, turn_id: turn.id },
      ...(stop === 'cancelled' && { isError: true }),
    }
  } catch (error) {
    if (!(error instanceof Refusal) && !(error instanceof Error && error.name === 'UpstreamFailure')) throw error
    // The turn failed, not the call: a model at the other end can read why.
    return { content: [{ type: 'text', text: error.message }], isError: true }
  } finally {
    call.signal.removeEventListener('abort', cancel)
  }
}

async function sessionOf(sessions: Sessions, agent: Agent, named: string | undefined, call: McpCall): Promise<string> {
  if (named === undefined) return call.sessionId === undefined ? v7() : stableId('mcp', call.sessionId, agent.id)
  const session = await sessions.find(named)
  if (session?.agentId !== agent.id)
    throw new Refusal('session_not_found', `session_id: the agent ${agent.name} has no session ${named}`)
  return named
}

/** Tells the client each phase, and now and then what the agent has said so far. */
async function report(deps: AgentToolDeps, turn: AcceptedTurn, { progress }: McpCall): Promise<void> {
  if (!progress) return
  let step = 0
  let text = ''
  let toldMs = 0
  const tell = (message: string): void => progress({ progress: ++step, message })
  for await (const event of turn.events()) {
    if (event.type === 'text') {
      text += event.delta
      if (deps.now() - toldMs < deps.progressMs) continue
      toldMs = deps.now()
      tell(text.slice(-deps.progressChars))
    } else {
      const message = describe(event)
      if (message !== undefined) tell(message)
    }
  }
}
function describe(event: TurnEvent): string | undefined {
  if (event.type === 'phase') return event.detail
  if (event.type === 'thinking') return 'The agent thinks'
  if (event.type === 'tool-started') return `Uses ${event.tool}`
  return undefined
}
