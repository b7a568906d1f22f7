import type { Logger } from 'svc/sdk'
import { enforced, findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Hooks, PluginDatabase, ToolDescription, Tools } from 'svc/sdk'
import type { ToolCall } from 'svc/providers'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import { ToolCallEnded, ToolCallStarting } from '../contract.ts'
import type { ToolCallAttempt } from '../contract.ts'
import type { LiveTurn } from './live-turn.ts'
import type { Offer, Outcome } from './loop.ts'
import type { Pace } from '../safety/tool-call-rate.ts'
import { holdsPersonalData } from '../safety/personal-data.ts'
import type { PersonalData } from '../safety/personal-data.ts'
import type { Progress } from './progress.ts'
import { screenOutside } from '../safety/screening.ts'
import type { OutsideScreening } from '../safety/screening.ts'
import { argumentHash, checkFlow, isLabel, union } from '../safety/taint.ts'
import type { Declassification } from '../safety/taint.ts'
import { effectKey } from './record.ts'
import type { TurnRecord } from './record.ts'

export interface ToolExecutorDeps {
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly agents: Agents
  readonly tools: Tools
  readonly hooks: Hooks
  readonly record: TurnRecord
  readonly pace: Pace
  readonly personalData: PersonalData
  /** Told of each call that was refused for what its arguments carry. */
  readonly withheld: (agent: Agent, label: string, tool: string) => void
  readonly waitingAfterMs: number
  readonly screening: OutsideScreening
  /** Told when a turn has begun to wait for a person. */
  readonly waits: () => void
  /** Settles when no plugin is being loaded: a gate may be gone for a moment only. */
  readonly loaded: (signal: AbortSignal) => Promise<void>
  readonly log: Pick<Logger, 'warn'>
}

/** The one way from a model's call to a tool: right, pace, labels, gate, then the call and its trace. */
export class ToolExecutor {
  readonly #deps: ToolExecutorDeps
  readonly #live: LiveTurn
  readonly #agent: Agent
  readonly #progress: Progress
  constructor(deps: ToolExecutorDeps, facts: { live: LiveTurn; agent: Agent; progress: Progress }) {
    this.#deps = deps
    this.#live = facts.live
    this.#agent = facts.agent
    this.#progress = facts.progress
  }

  /** What the model is told of. */
  offered(): readonly ToolDescription[] {
    return this.#agent.manifest.capabilities.tools.length === 0
      ? []
      : this.#deps.tools.list().filter((tool) => this.#deps.agents.mayUse(this.#agent, tool))
  }
  offer(name: string): Offer {
    const { tools, agents } = this.#deps
    const found = tools.find(name)
    if (!found) {
      const names = this.offered().map((tool) => tool.name)
      return `There is no tool "${name}"${suggest(findNearest(name, names)) || '.'}${names.length === 0 ? '' : ` There are: ${names.join(', ')}.`}`
    }
    if (!agents.mayUse(this.#agent, found)) {
      const needs =
        found.needs === undefined
          ? ''
          : ` It needs capabilities.${found.needs} of the manifest besides its name in capabilities.tools.`
      return `The tool "${name}" is not granted to this agent: its capabilities, its tool lists or its mode do not let it through.${needs}`
    }
    return { risk: found.risk, polls: found.polls ?? false }
  }

  /** Rejects only when the signal aborts. */
  async call(call: ToolCall, signal: AbortSignal): Promise<Outcome> {
    const from = performance.now()
    const at = new Date().toISOString()
    const { tools, hooks, pace } = this.#deps
    const progress = this.#progress
    const most = this.#agent.manifest.resources.max_tool_calls_per_minute
    const waitSecs = pace.take(this.#agent.id, most)
    const refusal =
      waitSecs > 0
        ? `this agent made ${most} tool calls in the last minute; wait ${waitSecs} seconds`
        : await this.#admit(call, signal)
    signal.throwIfAborted()
    let outcome: Outcome
    if (refusal === undefined) {
      progress.begun.add(call.id)
      const result = await tools.call(call.name, call.args, {
        agentId: this.#agent.id,
        agentName: this.#agent.name,
        sessionId: this.#live.sessionId,
        turnId: this.#live.id,
        callId: effectKey(this.#live.id, call.id),
        signal,
        labels: progress.labels,
      })
      if (!result.failed && tools.find(call.name)?.risk !== 'read') progress.effects.push(call.name)
      this.#label(call.name, result.text)
      if (result.refused !== undefined) {
        this.#deps.withheld(this.#agent, result.refused, call.name)
        await this.#deps.db.batch([this.#deps.record.withheld(this.#live, result.text)])
      }
      outcome = { text: await this.#screen(call.name, result.text), failed: result.failed, labels: progress.labels }
      await hooks.emit(ToolCallEnded, {
        agent: this.#agent,
        turnId: this.#live.id,
        tool: call.name,
        failed: result.failed,
        durationMs: result.durationMs,
      })
    } else outcome = { text: `refused: ${refusal}`, failed: true }
    progress.outcomes.set(call.id, outcome)
    progress.trace({
      kind: 'tool',
      name: call.name,
      callId: call.id,
      startedAt: at,
      durationMs: performance.now() - from,
      failed: outcome.failed,
      input: JSON.stringify(call.args ?? null),
      output: outcome.text,
    })
    return outcome
  }

  /** What the tool's answer brings into the window from now on. */
  #label(tool: string, text: string): void {
    const labels = this.#deps.tools.find(tool)?.labels ?? []
    const brought = new Map<Label, string>(labels.filter(isLabel).map((label) => [label, `the answer of ${tool}`]))
    if (holdsPersonalData(text, this.#deps.personalData)) brought.set('Pii', `the answer of ${tool}`)
    if (brought.size > 0) this.#progress.carried = union(this.#progress.carried, brought)
  }

  /** Answers from outside are looked through, and what is found follows the turn. */
  async #screen(name: string, text: string): Promise<string> {
    const { tools, screening, db, record } = this.#deps
    if (
      screening.policy === 'off' ||
      !tools.find(name)?.labels?.some((label) => label === 'ExternalNetwork' || label === 'UntrustedAgent')
    )
      return text
    const screened = await screenOutside(`the answer of ${name}`, text, screening)
    if (screened.suspicion === undefined) return screened.text
    this.#progress.suspicion ??= screened.suspicion
    await db.batch([record.suspected(this.#live, screened.suspicion)])
    return screened.text
  }

  /** Why the call may not be made, in words for the model; `undefined` when it may. */
  async #admit(call: ToolCall, signal: AbortSignal): Promise<string | undefined> {
    const { tools, db, record } = this.#deps
    const tool = tools.find(call.name)
    const flow = {
      tool: call.name,
      args: call.args,
      refuses: tool?.refuses ?? [],
      carried: this.#progress.carried,
      commands: this.#agent.manifest.capabilities.shell,
    }
    const verdict = checkFlow(flow)
    let approver: string | undefined
    const attempt = {
      agent: this.#agent,
      turnId: this.#live.id,
      sessionId: this.#live.sessionId,
      callId: call.id,
      tool: call.name,
      args: call.args,
      risk: tool?.risk ?? ('execute' as const),
      signal,
      labels: this.#progress.labels,
      approve: (by: string) => {
        approver = by
      },
      ...(verdict.allowed ? {} : { refusal: verdict.text }),
      ...(this.#progress.suspicion === undefined ? {} : { suspicion: this.#progress.suspicion }),
    }
    const refusal = await this.#gate(attempt, signal)
    if (refusal !== undefined) {
      if (!verdict.allowed) this.#deps.withheld(this.#agent, verdict.label, call.name)
      return refusal
    }
    const decided =
      verdict.allowed || approver === undefined
        ? verdict
        : checkFlow({ ...flow, approved: new Map([[argumentHash(call.name, call.args), approver]]) })
    if (!decided.allowed) {
      enforced('taint_tracking')
      this.#deps.withheld(this.#agent, decided.label, call.name)
      await db.batch([record.withheld(this.#live, decided.text)])
      return decided.text
    }
    // The record is on disk before the labelled value is anywhere else.
    if (decided.declassified.length > 0)
      await db.batch(decided.declassified.map((each: Declassification) => record.declassified(this.#live, each)))
    return undefined
  }

  async #gate(attempt: ToolCallAttempt, signal: AbortSignal): Promise<string | undefined> {
    let waits = false
    const timer = setTimeout(() => {
      waits = true
      this.#wait()
    }, this.#deps.waitingAfterMs).unref()
    try {
      for (;;) {
        signal.throwIfAborted()
        try {
          await this.#deps.hooks.check(ToolCallStarting, attempt)
          return undefined
        } catch (error) {
          if (!(error instanceof Refusal)) {
            if (!signal.aborted)
              this.#deps.log.warn(
                `a call of ${attempt.tool} in turn ${attempt.turnId} was refused, because its check failed`,
                error,
              )
            return 'the check of this call failed'
          }
          if (error.details['ask_again'] !== true) return error.message
          // Whoever asks is being replaced. Nothing may slip through while nobody stands at the gate.
          await this.#deps.loaded(signal)
        }
      }
    } finally {
      clearTimeout(timer)
      if (waits) this.#progress.waiting--
      await this.#resume(signal)
    }
  }

  #marked: Promise<unknown> = Promise.resolve()
  #wait(): void {
    this.#progress.waiting++
    if (this.#live.waiting) return
    this.#live.waiting = true
    this.#marked = this.#deps.db.batch([this.#deps.record.waiting(this.#live.id)])
    // Who goes on hears of the failure.
    this.#marked.catch(() => undefined)
    this.#deps.waits()
  }
  /** A turn that ends while it waits stays a waiting one: that is how the next boot knows that nothing of the call was done. */
  async #resume(signal: AbortSignal): Promise<void> {
    if (!this.#live.waiting || signal.aborted || this.#progress.waiting > 0) return
    await this.#marked
    this.#live.waiting = false
    await this.#deps.db.batch([this.#deps.record.running(this.#live.id)])
  }
}
