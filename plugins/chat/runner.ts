import { estimateUsage } from 'svc/providers'
import type { CompletionRequest, ToolCall, Turn, Usage } from 'svc/providers'
import { Refusal } from 'svc/sdk'
import type { Hooks, PluginDatabase, Statement, Tools } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Inference, ResolvedModel } from '../providers/contract.ts'
import type { Message, Sessions } from '../sessions/contract.ts'
import { PromptBuilt, ToolCallEnded, ToolCallStarting, TurnEnded, TurnFailed, TurnStarting } from './contract.ts'
import type { TurnResult } from './contract.ts'
import { explain, naming } from './failure.ts'
import { createGuard, guardLimits } from './guard.ts'
import { toTurns } from './history.ts'
import type { LiveTurn } from './live.ts'
import { runLoop } from './loop.ts'
import type { LoopInput, LoopPorts, Outcome } from './loop.ts'
import { costUsd, effectKey } from './record.ts'
import type { TurnRecord } from './record.ts'
import { recall } from './recall.ts'
import type { Effects } from './recall.ts'
import { repair } from './repair.ts'

export interface RunnerParts {
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly agents: Agents
  readonly sessions: Sessions
  readonly effects: Effects
  readonly inference: Inference
  readonly tools: Tools
  readonly hooks: Hooks
  readonly record: TurnRecord
  readonly limits: { readonly historyMessages: number; readonly maxIterations: number; readonly toolCalls: number }
  /** Runs what must end before the plugin goes, and that nobody waits for. */
  readonly background: (work: () => Promise<void>) => void
  readonly onDefect: (error: unknown, turnId: string) => void
}

/** What is so far known of a turn that runs; what its last batch is made of, however it ends. */
interface Progress {
  agent: Agent | undefined
  model: ResolvedModel | undefined
  /** Everything that was said. */
  said: string
  /** What was said since the last record. */
  step: string
  /** The request that is being answered, to count what it cost when the answer is cut. */
  request: CompletionRequest | undefined
  readonly usages: Usage[]
  iterations: number
  /** Calls that are recorded and not answered. */
  calls: readonly ToolCall[]
  readonly begun: Set<string>
  readonly outcomes: Map<string, Outcome>
}

const INTERRUPTED = '[Interrupted: the service stopped before this was answered.]'

export class TurnRunner {
  readonly #parts: RunnerParts
  constructor(parts: RunnerParts) { this.#parts = parts }

  /** Runs a turn to whatever end and records it. Never rejects. `next` is the turn that follows in the session. */
  async run(live: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    const started = performance.now()
    const progress: Progress = {
      agent: undefined, model: undefined, said: '', step: '', request: undefined, usages: [], iterations: 0, calls: [], begun: new Set(), outcomes: new Map(),
    }
    const follow = (): Statement[] => {
      const after = next()
      return after ? [this.#parts.record.running(after.id)] : []
    }
    try {
      const result = await this.#turn(live, progress, follow)
      live.finish(result)
      const { agent } = progress
      if (agent) this.#parts.background(() => this.#parts.hooks.emit(TurnEnded, { agent, door: live.door, result, durationMs: performance.now() - started }))
    } catch (error) {
      await this.#broken(live, progress, naming(error, progress.model?.provider), follow)
    }
  }

  async #turn(live: LiveTurn, progress: Progress, follow: () => Statement[]): Promise<TurnResult> {
    const { db, agents, inference, hooks, sessions, record, limits } = this.#parts
    live.signal.throwIfAborted()
    const agent = progress.agent = await agents.require(live.agentId)
    live.push({ type: 'thinking' })
    await hooks.check(TurnStarting, { agent, turnId: live.id, sessionId: live.sessionId })
    const { model: chosen } = agent.manifest
    const [model, messages] = await Promise.all([
      inference.resolve({
        provider: chosen.provider, model: chosen.model,
        ...(chosen.base_url === undefined ? {} : { baseUrl: chosen.base_url }), ...(chosen.api_key_env === undefined ? {} : { apiKeyEnv: chosen.api_key_env }),
      }),
      sessions.tail(live.sessionId, live.id, limits.historyMessages),
    ])
    progress.model = model
    const input = await this.#input(live, agent, messages)
    progress.iterations = input.iterations
    progress.calls = input.pending?.calls ?? []
    const loop = runLoop(input, this.#ports(live, agent, progress, input.pending?.known))
    for (;;) {
      const { done, value } = await loop.next()
      if (done) {
        progress.iterations = value.iterations
        progress.request = undefined
        if (value.usage) progress.usages.push(value.usage)
        const result = this.#result(live, progress, value.stop)
        await db.batch([
          ...record.said(live, value.text),
          ...(value.usage ? record.spent(live, progress.model, value.usage) : []),
          ...record.ended(live, 'done', `${result.usage.input} tokens in, ${result.usage.output} out`),
          ...follow(),
        ])
        return result
      }
      if (value.type === 'text') {
        progress.said += value.delta
        progress.step += value.delta
      }
      live.push(value)
    }
  }

  async #input(live: LiveTurn, agent: Agent, messages: readonly Message[]): Promise<LoopInput> {
    const maxIterations = Math.min(agent.manifest.autonomous.max_iterations, this.#parts.limits.maxIterations)
    const base = { turns: toTurns(messages), maxIterations, signal: live.signal, iterations: 0 }
    return live.resumed ? { ...base, ...await recall(this.#parts.effects, live.id, messages) } : base
  }

  #ports(live: LiveTurn, agent: Agent, progress: Progress, known: ReadonlyMap<string, Outcome> | undefined): LoopPorts {
    const { db, agents, tools, hooks, record, limits } = this.#parts
    const offered = tools.list().filter((tool) => agents.mayUse(agent, tool))
    return {
      guard: createGuard({ ...guardLimits, callsPerTurn: limits.toolCalls }),
      complete: (turns, signal) => this.#complete(live, agent, progress, offered, turns, signal),
      offer(name) {
        const found = tools.find(name)
        if (!found) return `There is no tool "${name}".${offered.length === 0 ? '' : ` There are: ${offered.map((tool) => tool.name).join(', ')}.`}`
        if (!agents.mayUse(agent, found)) return `The tool "${name}" is not granted to this agent: its capabilities, its tool lists or its mode do not let it through.`
        return { risk: found.risk, polls: found.polls ?? false }
      },
      async recordCalls({ text, calls, usage }) {
        progress.request = undefined
        progress.usages.push(usage)
        await db.batch([...record.calls(live, text, calls), ...(progress.model ? record.spent(live, progress.model, usage) : [])])
        progress.step = ''
        progress.calls = calls
        progress.begun.clear()
        progress.outcomes.clear()
      },
      async recordReceipt(call, outcome) { await db.batch([record.receipt(live, call, outcome)]) },
      async recordResults(results) {
        // What is known of an earlier process has its receipt, or stays unknown.
        const fresh = results.filter(({ call }) => !known?.has(call.id))
        await db.batch([...record.results(live, results), ...fresh.map(({ call, outcome }) => record.receipt(live, call, outcome))])
        progress.calls = []
      },
      async call(call, signal) {
        const refusal = await admitted(hooks.check(ToolCallStarting, {
          agent, turnId: live.id, sessionId: live.sessionId, callId: call.id, tool: call.name, args: call.args, risk: tools.find(call.name)?.risk ?? 'execute', signal,
        }))
        signal.throwIfAborted()
        if (refusal !== undefined) return { text: refusal, failed: true }
        progress.begun.add(call.id)
        const result = await tools.call(call.name, call.args, {
          agentId: agent.id, agentName: agent.name, sessionId: live.sessionId, turnId: live.id, callId: effectKey(live.id, call.id), signal,
        })
        const outcome = { text: result.text, failed: result.failed }
        progress.outcomes.set(call.id, outcome)
        await hooks.emit(ToolCallEnded, { agent, turnId: live.id, tool: call.name, failed: result.failed, durationMs: result.durationMs })
        return outcome
      },
    }
  }

  async #complete(live: LiveTurn, agent: Agent, progress: Progress, offered: CompletionRequest['tools'], turns: readonly Turn[], signal: AbortSignal) {
    const { hooks, inference } = this.#parts
    const { options } = live
    const { model: manifest } = agent.manifest
    if (!progress.model) throw new Error('a turn asks a model before one is chosen')
    const request = await hooks.apply(PromptBuilt, {
      model: progress.model.model, system: manifest.system_prompt, turns: repair(turns).turns,
      tools: offered, maxTokens: options.maxTokens ?? manifest.max_tokens, temperature: options.temperature ?? manifest.temperature,
      ...(options.thinking === undefined ? {} : { thinking: options.thinking }),
    })
    progress.iterations++
    progress.request = request
    return inference.complete(progress.model, request, signal)
  }

  #result(live: LiveTurn, progress: Progress, stop: TurnResult['stop']): TurnResult {
    const { model, usages } = progress
    const costs = usages.map((usage) => (model ? costUsd(model, usage) : null))
    return {
      turnId: live.id, sessionId: live.sessionId, text: progress.said, usage: sum(usages), iterations: progress.iterations,
      costUsd: costs.reduce<number | null>((total, cost) => (total === null || cost === null ? null : total + cost), 0),
      provider: model?.provider ?? '', model: model?.model ?? '', stop,
    }
  }

  /** The turn was stopped, or something failed: what was said and done is kept, marked as not being all. */
  async #broken(live: LiveTurn, progress: Progress, error: unknown, follow: () => Statement[]): Promise<void> {
    const { record, hooks, onDefect, db, background } = this.#parts
    const stopped = live.stopped
    const message = stopped ? stopped.message : explain(error)
    if (message === undefined) onDefect(error, live.id)
    const reason = message ?? 'internal error'
    const state = stopped ? (stopped.by === 'cancel' ? 'cancelled' : 'interrupted') : 'failed'
    const shown = stopped?.by === 'unload' ? new Refusal('service_unavailable', 'The turn was interrupted: the service is stopping or being replaced', { retryAfterSecs: 5 }) : error
    const cut = progress.request !== undefined && progress.step !== '' ? estimateUsage(progress.request, progress.step.length) : undefined
    if (cut) progress.usages.push(cut)
    try {
      if (state === 'interrupted' && live.resumable) {
        const known = progress.calls.flatMap((call) => {
          const outcome = progress.outcomes.get(call.id)
          return outcome ? [record.receipt(live, call, outcome)] : []
        })
        await db.batch([...known, ...(cut && progress.model ? record.spent(live, progress.model, cut) : []), record.release(live.id)])
      } else {
        await db.batch([
          ...this.#unanswered(live, progress),
          ...this.#partial(live, progress, state),
          ...(cut && progress.model ? record.spent(live, progress.model, cut) : []),
          ...record.ended(live, state, reason),
          ...follow(),
        ])
      }
    } catch (unrecorded) {
      // The turn stays open in the journal, and the next boot marks it: nothing is lost, only told later.
      onDefect(unrecorded, live.id)
    }
    if (state === 'cancelled') {
      const { agent } = progress
      const result = this.#result(live, progress, 'cancelled')
      live.finish(result)
      if (agent) background(() => hooks.emit(TurnEnded, { agent, door: live.door, result, durationMs: 0 }))
      return
    }
    live.fail(shown)
    const { agent } = progress
    if (agent) background(() => hooks.emit(TurnFailed, { agent, door: live.door, turnId: live.id, message: reason }))
  }

  #partial(live: LiveTurn, progress: Progress, state: 'cancelled' | 'interrupted' | 'failed'): readonly Statement[] {
    const text = progress.step.trimStart()
    if (state === 'cancelled') return this.#parts.record.said(live, text, 'cancelled')
    if (state === 'interrupted') return this.#parts.record.said(live, text === '' ? INTERRUPTED : text, 'interrupted')
    return text === '' ? [] : this.#parts.record.said(live, text, 'cut')
  }

  /** Every recorded call gets a result, or the transcript could not be sent to a model again. */
  #unanswered(live: LiveTurn, progress: Progress): Statement[] {
    if (progress.calls.length === 0) return []
    const { record } = this.#parts
    const results = progress.calls.map((call) => ({
      call,
      outcome: progress.outcomes.get(call.id) ?? {
        text: progress.begun.has(call.id) ? 'stopped: it is not known how far this got' : 'not run: the turn was stopped before', failed: true,
      },
    }))
    return [...record.results(live, results), ...results.map(({ call, outcome }) => record.receipt(live, call, outcome))]
  }
}

/** Why a gate refused, in words for the model; `undefined` when it did not. */
async function admitted(gate: Promise<void>): Promise<string | undefined> {
  try {
    await gate
    return undefined
  } catch (error) {
    return error instanceof Refusal ? `refused: ${error.message}` : 'refused: the check of this call failed'
  }
}

function sum(usages: readonly Usage[]): Usage {
  let input = 0
  let output = 0
  let cachedInput = 0
  let thinking = 0
  let estimated = false
  for (const usage of usages) {
    input += usage.input
    output += usage.output
    cachedInput += usage.cachedInput ?? 0
    thinking += usage.thinking ?? 0
    estimated ||= usage.estimated ?? false
  }
  return { input, output, ...(cachedInput > 0 ? { cachedInput } : {}), ...(thinking > 0 ? { thinking } : {}), ...(estimated ? { estimated } : {}) }
}
