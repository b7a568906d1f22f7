import { Refusal } from 'svc/sdk'
import type { PluginDatabase } from 'svc/sdk'
import type { Chat, TurnRequest, Turns } from '../../../chat/contract.ts'
import type { Sessions } from '../../../sessions/contract.ts'
import type { StepCall, StepResult } from '../../contract.ts'
import { isLabel } from '../../../sessions/contract.ts'
import { StepTimeout } from '../timeout.ts'
import type { BuiltInStep } from './built-in.ts'
import { sessionOf } from './session.ts'

export interface AgentStepDeps {
  readonly turns: Pick<Turns, 'ensure'>
  readonly chat: Pick<Chat, 'cancel'>
  readonly sessions: Pick<Sessions, 'ensure'>
  readonly db: Pick<PluginDatabase, 'batch'>
}

/**
 * An agent answers the prompt, in a conversation of the step's own. The turn has the key of the attempt as its id, so
 * that one that was begun before a crash is followed and not begun again.
 */
export function agentStep(deps: AgentStepDeps): BuiltInStep {
  return {
    name: 'agent',
    check() {},
    run: (call) => ask(deps, call),
  }
}

async function ask(deps: AgentStepDeps, call: StepCall): Promise<StepResult> {
  const { turns, chat, sessions, db } = deps
  const { key, agentId, signal } = call
  if (agentId === undefined) throw new Error('it names no agent')
  const sessionId = sessionOf(call, agentId)
  await db.batch(sessions.ensure(sessionId, agentId))
  let turn
  try {
    turn = await turns.ensure({ ...requestOf(call, agentId), id: key, sessionId })
  } catch (error) {
    // Quiet hours, or too much at once: nothing was begun.
    if (!(error instanceof Refusal) || error.retryAfterSecs === undefined) throw error
    return { outcome: 'waiting', state: null, untilMs: Date.now() + error.retryAfterSecs * 1000 }
  }
  const cancel = (): void => {
    // A turn goes on by itself when the daemon stops.
    if (signal.reason instanceof StepTimeout) chat.cancel(key)
  }
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const { text, usage, costUsd, stop } = await turn.result()
    if (stop === 'cancelled') throw new Error('the turn was stopped')
    return { outcome: 'done', output: text, inputTokens: usage.input, outputTokens: usage.output, costUsd }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

function requestOf(call: StepCall, agentId: string): Omit<TurnRequest, 'id'> {
  return {
    agentId,
    text: String(call.with['prompt']),
    entryPoint: 'workflow',
    labels: call.labels.filter(isLabel),
    hops: call.hops,
  }
}
