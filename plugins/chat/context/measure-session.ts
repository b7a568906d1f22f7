import type { Hooks, Tools } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { SessionContext, Sessions } from '../../sessions/contract.ts'
import { chooseModel } from '../turn/model-choice.ts'
import { PromptBuilt, SystemPromptBuilt } from '../contract.ts'
import { explain } from '../turn/failure.ts'
import { toTurns } from './history.ts'
import { offeredTools } from './request.ts'
import { repair } from '../safety/history-repair.ts'
import { measure, pressureOf } from './window.ts'

export interface MeasureDeps {
  readonly agents: Agents
  readonly sessions: Sessions
  readonly inference: Inference
  readonly tools: Tools
  readonly hooks: Hooks
  readonly historyMessages: number
}

/**
 * The share of the window that the next model call in this session would take; `tokens` is the session's own part.
 * Returns the context unchanged when no model is usable now.
 */
export async function measureSession(deps: MeasureDeps, context: SessionContext): Promise<SessionContext> {
  const { agents, sessions, inference, tools, hooks, historyMessages } = deps
  const agent = await agents.find(context.agentId)
  if (!agent) return context
  const { manifest } = agent
  try {
    const { model } = await chooseModel(inference, agent)
    const messages = await sessions.window(context.sessionId, manifest.max_history_messages ?? historyMessages)
    const { text: system } = await hooks.apply(SystemPromptBuilt, { agent, text: manifest.model.system_prompt })
    const request = await hooks.apply(PromptBuilt, {
      model: model.model,
      system,
      turns: repair(toTurns(messages)).turns,
      tools: offeredTools(agent, tools, agents),
      maxTokens: manifest.model.max_tokens,
      temperature: manifest.model.temperature,
    })
    const use = measure(request, system, model.contextWindow)
    return { ...context, tokens: use.history, use: { ...use, pressure: pressureOf(use.used / model.contextWindow) } }
  } catch (error) {
    // A session can be read whether or not its model can be called.
    if (explain(error) === undefined) throw error
    return context
  }
}
