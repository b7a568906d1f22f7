import { enforced, findNearest, ServerAway, suggest } from 'svc/internal'
import type { ToolCall } from 'svc/providers'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Hooks, Logger, ToolCallContext, ToolDescription, ToolResult, Tools } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import { offeredTools } from '../context/request.ts'
import { ToolCallChecking, ToolCallEnded, ToolCallStarting } from '../contract.ts'
import type { ToolCallAttempt } from '../contract.ts'
import { holdsPersonalData, isLabel, union } from '../safety/labels.ts'
import type { PersonalData } from '../safety/labels.ts'
import { createGuard, guardLimits } from '../safety/loop-guard.ts'
import type { Guard } from '../safety/loop-guard.ts'
import { refusedByRequesters } from '../safety/requester-rights.ts'
import { screenOutside } from '../safety/screening.ts'
import type { OutsideScreening } from '../safety/screening.ts'
import { argumentHash, checkFlow } from '../safety/taint.ts'
import type { ToolCallRate } from '../safety/tool-call-rate.ts'
import { riskOfCall } from './call-risk.ts'
import type { LiveTurn } from './live-turn.ts'
import type { TurnProgress } from './progress.ts'
import { effectKey } from './record.ts'
import type { TurnRecord } from './record.ts'
import type * as ToolProgressModule from './tool-progress.ts'
import type { Offer, Outcome, ToolOutcome, ToolPorts } from './tool-step.ts'

export interface ToolExecutorDeps {
  readonly agents: Agents
  readonly tools: Tools
  readonly hooks: Hooks
  readonly record: TurnRecord
  readonly toolCallRate: ToolCallRate
  readonly personalData: PersonalData
  /** Called for each tool call that was refused because of the labels of its arguments. */
  readonly onWithheld: (agent: Agent, label: string, tool: string) => void
  readonly waitingAfterMs: number
  readonly progressMs: number
  readonly screening: OutsideScreening
  /** Called when a turn begins to wait for a person. */
  readonly onWaiting: () => void
  /** Settles when no plugin is being loaded: a gate may be gone for a moment only. */
  readonly pluginsLoaded: (signal: AbortSignal) => Promise<void>
  readonly log: Pick<Logger, 'warn'>
  /** Tool calls of one turn, those of agents it asks included. */
  readonly maxToolCalls: number
  /** What a turn does for other agents is limited to what each of them may do itself. */
  readonly intersectRights: boolean
  /** Whether the key or the credential with which its message was sent is no longer accepted. */
  readonly isRevoked: (turn: LiveTurn) => boolean
}
/** The turn that calls tools. */
interface CallingTurn {
  readonly live: LiveTurn
  readonly agent: Agent
  readonly progress: TurnProgress
  readonly emit: ToolPorts['emit']
  /** Outcomes of an earlier process. */
  readonly known: ReadonlyMap<string, Outcome> | undefined
  /** The calls count already against the limit per minute. */
  readonly isCounted?: boolean
  /** Writes down that a call begins, where the step of the turn has not done it. */
  readonly begin?: (call: ToolCall) => Promise<void>
  /** Called when a call begins to wait for a person. */
  readonly onPerson?: () => void
  /** Who waits for the call. */
  readonly caller?: Pick<ToolCallContext, 'progress' | 'client'>
}
/** Kept: an `import()` of what is loaded already resolves its name again. */
let toolProgress: Promise<typeof ToolProgressModule> | undefined
/** The gate's plugin is being replaced, so the call has to be checked again. */
const CHECK_AGAIN = Symbol('check again')
const OUTSIDE_LABELS: ReadonlySet<string> = new Set<Label>(['ExternalNetwork', 'UntrustedAgent'])

/** The only way from a model's call to a tool: grant, rate, labels, gate, then the call and its trace. */
export class ToolExecutor implements ToolPorts {
  readonly guard: Guard
  readonly emit: ToolPorts['emit']
  readonly #deps: ToolExecutorDeps
  readonly #live: LiveTurn
  /** As it was before the latest call: what an operator takes from it is missing at the next one. */
  #agent: Agent
  readonly #progress: TurnProgress
  readonly #known: CallingTurn['known']
  readonly #calling: CallingTurn
  /** Settles when the journal knows that the turn waits. */
  #markedWaiting: Promise<unknown> = Promise.resolve()
  constructor(deps: ToolExecutorDeps, calling: CallingTurn) {
    const { live, agent, progress, emit, known } = calling
    this.#deps = deps
    this.#calling = calling
    this.#live = live
    this.#agent = agent
    this.#progress = progress
    this.#known = known
    this.emit = emit
    this.guard = createGuard({ ...guardLimits, callsPerTurn: deps.maxToolCalls }, live.toolCalls)
  }

  offer(name: string, args: unknown): Offer {
    const { tools, agents } = this.#deps
    const tool = tools.find(name)
    if (!tool) {
      const names = offeredTools(this.#agent, tools, agents).map((each) => each.name)
      const nearest = suggest(findNearest(name, names)) || '.'
      return `There is no tool "${name}"${nearest}${names.length === 0 ? '' : ` There are: ${names.join(', ')}.`}`
    }
    if (agents.mayUse(this.#agent, tool)) return { risk: riskOfCall(tool, args), polls: tool.polls ?? false }
    return notGranted(tool)
  }

  /** Rejects when the signal aborts, and while the database is away. */
  async call(call: ToolCall, signal: AbortSignal): Promise<Outcome> {
    const start = performance.now()
    const startedAt = new Date().toISOString()
    const refusal = await this.#refuse(call, signal)
    signal.throwIfAborted()
    const outcome =
      refusal === undefined ? await this.#run(call, signal) : { text: `refused: ${refusal}`, failed: true }
    this.#progress.outcomes.set(call.id, outcome)
    this.#progress.addTrace({
      kind: 'tool',
      name: call.name,
      callId: call.id,
      startedAt,
      durationMs: performance.now() - start,
      failed: outcome.failed,
      input: JSON.stringify(call.args ?? null),
      output: outcome.text,
    })
    return outcome
  }

  async recordReceipt(call: ToolCall, outcome: Outcome): Promise<void> {
    await this.#deps.record.commit(this.#live, [this.#deps.record.receipt(this.#live, call, outcome)])
  }
  async recordResults(results: readonly ToolOutcome[]): Promise<void> {
    const { record } = this.#deps
    // Outcomes of an earlier process have their receipt, or stay unknown.
    const fresh = results.filter(({ call }) => !this.#known?.has(call.id))
    await record.commit(this.#live, [
      ...record.toolResults(this.#live, results),
      ...fresh.map(({ call, outcome }) => record.receipt(this.#live, call, outcome)),
      ...record.tracesSoFar(this.#progress),
    ])
    this.#progress.calls = []
  }

  /** Why the call is not made, in words for the model; `undefined` when it is. */
  async #refuse(call: ToolCall, signal: AbortSignal): Promise<string | undefined> {
    const refusal = (await this.#lostRights(call)) ?? this.#exceedsRate() ?? (await this.#exceedsRights(call))
    if (refusal !== undefined) return refusal
    let waited = false
    const onPerson = (): void => {
      waited = true
      this.#calling.onPerson?.()
    }
    // A person may take days, and rights may be gone by then.
    return (
      (await this.#admit(call, signal, onPerson)) ??
      (waited ? ((await this.#lostRights(call)) ?? (await this.#exceedsRights(call))) : undefined)
    )
  }

  /** A turn may last long: what counts is the agent as it is now, not as it was when the turn began. */
  async #lostRights({ name }: ToolCall): Promise<string | undefined> {
    const { agents, tools, isRevoked } = this.#deps
    if (isRevoked(this.#live)) return 'the device, sign-in or key that began this turn is no longer accepted'
    const agent = await agents.find(this.#live.agentId)
    if (!agent) return 'this agent was removed'
    this.#agent = agent
    if (agent.state !== 'Running') return `this agent is ${agent.state} and may call no tools`
    const tool = tools.find(name)
    return tool && !agents.mayUse(agent, tool) ? notGranted(tool) : undefined
  }

  #exceedsRate(): string | undefined {
    if (this.#calling.isCounted) return undefined
    const max = this.#agent.manifest.resources.max_tool_calls_per_minute
    const waitSecs = this.#deps.toolCallRate.take(this.#agent.id, max)
    if (waitSecs === 0) return undefined
    return `this agent made ${max} tool calls in the last minute; wait ${waitSecs} seconds`
  }

  async #exceedsRights({ name }: ToolCall): Promise<string | undefined> {
    const { agents, tools, intersectRights } = this.#deps
    const { onBehalf } = this.#live
    const tool = tools.find(name)
    if (!intersectRights || onBehalf.length === 0 || tool?.reports === true) return undefined
    return refusedByRequesters(agents, onBehalf, tool ?? { name, risk: 'execute' })
  }

  async #run(call: ToolCall, signal: AbortSignal): Promise<Outcome> {
    const { tools, hooks, record } = this.#deps
    const { id: turnId, sessionId } = this.#live
    const agent = this.#agent
    const progress = this.#progress
    await this.#calling.begin?.(call)
    await record.confirm(this.#live)
    progress.startedCalls.add(call.id)
    const { reportProgress } = await (toolProgress ??= import('./tool-progress.ts'))
    const { end, ...reports } = reportProgress(this.#live, call.name, this.#deps.progressMs)
    const calling = tools.call(call.name, call.args, {
      agentId: agent.id,
      agentName: agent.name,
      sessionId,
      turnId,
      callId: effectKey(turnId, call.id),
      signal,
      labels: progress.labels,
      ...reports,
      ...this.#calling.caller,
      onBehalf: this.#live.onBehalf,
      ...omitUndefined({ hops: this.#live.options.hops, user: this.#live.user }),
    })
    const result = await calling.finally(end)
    if (!result.failed && riskOfCall(tools.find(call.name), call.args) !== 'read') progress.effects.push(call.name)
    this.#addLabels(call.name, result)
    if (result.refused !== undefined) {
      this.#deps.onWithheld(agent, result.refused, call.name)
      await record.commit(this.#live, [record.callWithheld(this.#live, result.text)])
    }
    const text = await this.#screen(call.name, result.text)
    const { failed, durationMs, content, structured } = result
    await hooks.emit(ToolCallEnded, { agent, turnId, tool: call.name, failed, durationMs })
    // Parts that the screening has not read go to a caller of a single call only, never to a model.
    const parts = text === result.text ? omitUndefined({ content, structured }) : {}
    return { text, failed, labels: progress.labels, ...parts }
  }

  /** Adds the labels that the tool's answer brings into the window. */
  #addLabels(tool: string, { text }: ToolResult): void {
    const source = `the answer of ${tool}`
    const labels = this.#deps.tools.find(tool)?.labels ?? []
    const added = new Map<Label, string>(labels.filter(isLabel).map((label) => [label, source]))
    if (holdsPersonalData(text, this.#deps.personalData)) added.set('Pii', source)
    if (added.size > 0) this.#progress.carried = union(this.#progress.carried, added)
  }

  /** Answers from outside are screened. A suspicion stays with the turn. */
  async #screen(name: string, text: string): Promise<string> {
    const { tools, screening, record } = this.#deps
    const labels = tools.find(name)?.labels ?? []
    if (screening.policy === 'off' || !labels.some((label) => OUTSIDE_LABELS.has(label))) return text
    const screened = await screenOutside(`the answer of ${name}`, text, screening)
    if (screened.suspicion !== undefined) {
      this.#progress.suspicion ??= screened.suspicion
      await record.commit(this.#live, [record.injectionSuspected(this.#live, screened.suspicion)])
    }
    return screened.text
  }

  /** Why the call may not be made, in words for the model; `undefined` when it may. */
  async #admit(call: ToolCall, signal: AbortSignal, onPerson: () => void): Promise<string | undefined> {
    const { tools, record } = this.#deps
    const { name: toolName, args } = call
    const agent = this.#agent
    const { carried, labels, suspicion } = this.#progress
    const tool = tools.find(toolName)
    const commands = agent.manifest.capabilities.shell
    const flow = { tool: toolName, args, refuses: tool?.refuses ?? [], carried, commands }
    const verdict = checkFlow(flow)
    let approver: string | undefined
    const refusal = await this.#passGate({
      agent,
      turnId: this.#live.id,
      sessionId: this.#live.sessionId,
      callId: call.id,
      tool: toolName,
      args,
      risk: tool?.risk ?? 'execute',
      signal,
      labels,
      onBehalf: this.#live.onBehalf,
      approve: (by) => {
        approver = by
      },
      waits: onPerson,
      ...(!verdict.allowed && { refusal: `${agent.name} wants to ${purposeOf(toolName)}. ${verdict.reason}` }),
      ...omitUndefined({ suspicion }),
    })
    signal.throwIfAborted()
    if (refusal !== undefined) {
      if (!verdict.allowed) this.#deps.onWithheld(agent, verdict.label, toolName)
      return refusal
    }
    const decided =
      verdict.allowed || approver === undefined
        ? verdict
        : checkFlow({ ...flow, approved: new Map([[argumentHash(toolName, args), approver]]) })
    if (!decided.allowed) {
      enforced('taint_tracking')
      this.#deps.onWithheld(agent, decided.label, toolName)
      await record.commit(this.#live, [record.callWithheld(this.#live, decided.text)])
      return decided.text
    }
    // The record is on disk before the labelled value is anywhere else.
    if (decided.declassified.length > 0)
      await record.commit(
        this.#live,
        decided.declassified.map((each) => record.declassified(this.#live, each)),
      )
    return undefined
  }

  /** Asks the listeners, which may wait for a person; meanwhile the turn is a waiting one. */
  async #passGate(attempt: ToolCallAttempt): Promise<string | undefined> {
    const { signal } = attempt
    let waits = false
    const timer = setTimeout(() => {
      waits = true
      this.#beginWaiting()
    }, this.#deps.waitingAfterMs).unref()
    try {
      for (;;) {
        signal.throwIfAborted()
        const refusal = await this.#check(attempt)
        if (refusal !== CHECK_AGAIN) return refusal
        // The asking plugin is being replaced. No call may pass while the gate is away.
        await this.#deps.pluginsLoaded(signal)
      }
    } finally {
      clearTimeout(timer)
      if (waits) this.#progress.waitingCalls--
      await this.#endWaiting(signal)
    }
  }

  async #check(attempt: ToolCallAttempt): Promise<string | typeof CHECK_AGAIN | undefined> {
    const { hooks, log } = this.#deps
    try {
      await hooks.check(ToolCallChecking, attempt)
      await hooks.check(ToolCallStarting, attempt)
      return undefined
    } catch (error) {
      if (error instanceof ServerAway) throw error
      if (error instanceof Refusal) return error.details['ask_again'] === true ? CHECK_AGAIN : error.message
      if (!attempt.signal.aborted)
        log.warn(`a call of ${attempt.tool} in turn ${attempt.turnId} was refused, because its check failed`, error)
      return 'the check of this call failed'
    }
  }

  #beginWaiting(): void {
    this.#progress.waitingCalls++
    if (this.#live.waiting) return
    this.#live.waiting = true
    this.#markedWaiting = this.#deps.record.commit(this.#live, [this.#deps.record.waiting(this.#live.id)])
    // The failure is thrown when the turn goes on.
    this.#markedWaiting.catch(() => undefined)
    this.#deps.onWaiting()
  }
  /** A turn that ends while it waits keeps the state `waiting`: the next start then knows that the call did nothing. */
  async #endWaiting(signal: AbortSignal): Promise<void> {
    if (!this.#live.waiting || signal.aborted || this.#progress.waitingCalls > 0) return
    await this.#markedWaiting
    this.#live.waiting = false
    await this.#deps.record.commit(this.#live, [this.#deps.record.running(this.#live.id)])
  }
}

function notGranted({ name, needs }: Pick<ToolDescription, 'name' | 'needs'>): string {
  const more =
    needs === undefined ? '' : ` It needs capabilities.${needs} of the manifest besides its name in capabilities.tools.`
  return (
    `The tool "${name}" is not granted to this agent: its capabilities, its tool lists or its mode do not ` +
    `let it through.${more}`
  )
}

const RUNNERS: ReadonlySet<string> = new Set(['shell_exec', 'process_start'])
/** What a tool is used for, in the words of an approval. */
function purposeOf(tool: string): string {
  return RUNNERS.has(tool) ? 'run a program' : `use ${tool}`
}
