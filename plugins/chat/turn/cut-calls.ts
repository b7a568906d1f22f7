import type { ToolCall } from 'svc/providers'
import { omitUndefined } from 'svc/sdk'
import type { Logger, Recovery, Tools } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import { isLabel } from '../safety/labels.ts'
import type { LiveTurn } from './live-turn.ts'
import { riskOfCall } from './call-risk.ts'
import { effectKey } from './record.ts'
import type { TurnRecord } from './record.ts'
import type { Outcome } from './tool-step.ts'

export interface CutCallDeps {
  readonly tools: Pick<Tools, 'find' | 'recover'>
  readonly record: TurnRecord
  readonly log: Pick<Logger, 'warn'>
  /** Counts what became of a call. */
  readonly onCutCall: (outcome: Recovery['outcome']) => void
}

const NOT_RUN: Outcome = {
  text: 'not run: the service stopped before this call, and the outcome of an earlier one is unknown',
  failed: true,
}

/**
 * Decides about calls that the end of the process cut off, in their order. Returns the outcomes of those that are not
 * made again; the others are. Durable before it settles, so that the next process decides nothing anew.
 */
export async function recoverCutCalls(
  deps: CutCallDeps,
  { live, agent }: { readonly live: LiveTurn; readonly agent: Agent },
  { calls, cut }: { readonly calls: readonly ToolCall[]; readonly cut: readonly ToolCall[] },
): Promise<ReadonlyMap<string, Outcome>> {
  const { record } = deps
  const outcomes = new Map<string, Outcome>()
  // Calls that change something run one after the other: of these only the first may have begun.
  const inOrder = calls.some(({ name, args }) => riskOfCall(deps.tools.find(name), args) !== 'read')
  for (const [index, call] of cut.entries()) {
    if (inOrder && index > 0) {
      if (outcomes.get(cut[0]?.id ?? '')?.failed !== true) break
      outcomes.set(call.id, NOT_RUN)
      await record.commit(live, [record.receipt(live, call, NOT_RUN)])
      continue
    }
    const outcome = await recoverCall(deps, { live, agent }, call)
    if (outcome) outcomes.set(call.id, outcome)
  }
  return outcomes
}

/** Decides about one call; `undefined` when it is made again, a failed outcome when it is unknown. */
export async function recoverCall(
  { tools, record, log, onCutCall }: CutCallDeps,
  { live, agent }: { readonly live: LiveTurn; readonly agent: Agent },
  call: ToolCall,
): Promise<Outcome | undefined> {
  const recovery = await tools.recover(call.name, call.args, {
    agentId: agent.id,
    agentName: agent.name,
    sessionId: live.sessionId,
    turnId: live.id,
    callId: effectKey(live.id, call.id),
    signal: live.signal,
    onBehalf: live.onBehalf,
    ...omitUndefined({ hops: live.options.hops }),
  })
  const { outcome } = recovery
  onCutCall(outcome)
  const entry = record.callCut(live, call, outcome)
  if (outcome === 'repeat') {
    await record.commit(live, [entry])
    return undefined
  }
  if (outcome === 'unknown')
    log.warn(
      `a call of ${call.name} in turn ${live.id} of ${agent.name} was cut off by the end of the process: ` +
        'it may have had its effect, and is not made again',
    )
  const labels = (tools.find(call.name)?.labels ?? []).filter(isLabel)
  const settled: Outcome = {
    text: recovery.text,
    failed: outcome === 'unknown',
    ...omitUndefined({ labels: labels.length > 0 ? labels : undefined }),
  }
  await record.commit(live, [record.receipt(live, call, settled, outcome === 'unknown' ? 'unknown' : undefined), entry])
  return settled
}
