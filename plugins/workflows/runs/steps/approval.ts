import * as v from 'valibot'
import { stableId } from 'svc/internal'
import { isObject, omitUndefined, Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import type { Agents } from '../../../agents/contract.ts'
import type { Approval, Approvals } from '../../../approvals/contract.ts'
import type { ChannelMessages } from '../../../channels/contract.ts'
import type { StepCall, StepResult } from '../../contract.ts'
import { refuse } from './refuse.ts'
import type { BuiltInStep } from './built-in.ts'

export interface ApprovalStepDeps {
  readonly agents: Pick<Agents, 'find'>
  readonly approvals: () => Pick<Approvals, 'find' | 'noteAsked' | 'request'> | undefined
  readonly channels: () => Pick<ChannelMessages, 'send'> | undefined
  readonly log: Pick<Logger, 'warn'>
}

const MAX_SECS = 30 * 86_400
const RETRY_MS = 30_000
/** Of the step type; the gate of tool calls has its own limits. */
const With = v.object({
  prompt: v.string(),
  /** How long a person has; then it counts as rejected. */
  timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(MAX_SECS)), 86_400),
  /** Who else is asked when nobody answers, and after how long. */
  escalate: v.optional(
    v.array(
      v.object({
        after_secs: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_SECS)),
        channel: v.string(),
        to: v.string(),
        account: v.optional(v.string()),
        thread: v.optional(v.string()),
      }),
    ),
    [],
  ),
})
type With = v.InferOutput<typeof With>

/**
 * A person decides whether the run goes on; the input goes to the next step unchanged. The request has the key of the
 * attempt as its id, so that it is made once.
 */
export function approvalStep(deps: ApprovalStepDeps): BuiltInStep {
  return {
    name: 'approval',
    check(definition) {
      const parsed = v.safeParse(v.omit(With, ['prompt']), definition)
      const [issue] = parsed.issues ?? []
      if (issue) throw refuse(`with.${v.getDotPath(issue) ?? ''}`, issue.expected ?? issue.message)
    },
    run: (call) => ask(deps, call),
  }
}

async function ask(deps: ApprovalStepDeps, call: StepCall): Promise<StepResult> {
  const approvals = deps.approvals()
  if (!approvals) throw new Error('the plugin "approvals" is not loaded')
  const options = v.parse(With, call.with)
  const approval = await requestOnce(deps, approvals, call, options)
  if (!approval) return { outcome: 'waiting', state: call.state, untilMs: Date.now() + RETRY_MS }
  if (approval.state === 'approved') return { outcome: 'done', output: call.input }
  if (approval.state !== 'pending') {
    throw new Error(whyNot(approval))
  }
  return escalate(deps, call, options, approval)
}

function whyNot({ state, decidedBy = '', timeoutSecs }: Approval): string {
  if (state === 'rejected') return `${decidedBy} rejected it`
  if (decidedBy === 'timeout') return `nobody approved it within ${timeoutSecs} seconds`
  return `the request ended: ${decidedBy}`
}

/** `undefined`: too many requests wait. */
async function requestOnce(
  { agents }: ApprovalStepDeps,
  approvals: Pick<Approvals, 'find' | 'request'>,
  { key, agentId: stepAgentId, step, runId, asker, workflowName }: StepCall,
  { prompt, timeout_secs: timeoutSecs }: With,
): Promise<Approval | undefined> {
  const known = await approvals.find(key)
  if (known) return known
  const agentId = stepAgentId ?? asker?.agentId
  const agent = agentId === undefined ? undefined : await agents.find(agentId)
  try {
    return await approvals.request({
      id: key,
      agentId: agent?.id ?? '',
      agentName: agent?.name ?? `the workflow "${workflowName}"`,
      // Asked and answered in the chat that the run was asked for in.
      ...omitUndefined({ turnId: asker?.turnId, sessionId: asker?.sessionId }),
      tool: 'workflow_approval',
      action: 'workflow_approval',
      description: `Step "${step}" of workflow run ${runId}`,
      summary: prompt.slice(0, 500),
      payload: { run_id: runId, step, prompt },
      risk: 'medium',
      timeoutSecs,
      intent: 'go on with a workflow',
    })
  } catch (error) {
    if (error instanceof Refusal && error.code === 'rate_limit') return undefined
    throw error
  }
}

/**
 * Asks whoever is due by now, each once and in the order of the times, and waits for the answer or the next one. A chat
 * that cannot be asked leaves the question to the others.
 */
async function escalate(
  deps: ApprovalStepDeps,
  call: StepCall,
  { prompt, escalate: levels }: With,
  approval: Approval,
): Promise<StepResult> {
  const sorted = levels.toSorted((a, b) => a.after_secs - b.after_secs)
  const since = Date.parse(approval.requestedAt)
  const expiresMs = Date.parse(approval.expiresAt)
  const due = sorted.filter(({ after_secs: secs }) => since + secs * 1000 <= Date.now()).length
  let asked = isObject(call.state) ? Number(call.state['asked']) : 0
  for (; asked < due; asked++) {
    const level = sorted[asked]
    if (level && !(await askChat(deps, level, { call, prompt, approval, at: asked })))
      return { outcome: 'waiting', state: { asked }, untilMs: Math.min(expiresMs, Date.now() + RETRY_MS) }
  }
  const next = sorted[due]
  const untilMs = next ? Math.min(since + next.after_secs * 1000, expiresMs) : expiresMs
  return { outcome: 'waiting', state: { asked }, untilMs: Math.min(untilMs, Date.now() + 60_000) }
}

interface Question {
  readonly call: StepCall
  readonly prompt: string
  readonly approval: Approval
  /** Of the chat among those of the step. */
  readonly at: number
}

/** `false`: it has to be tried again. */
async function askChat(
  { approvals, channels, log }: ApprovalStepDeps,
  { channel, to, account, thread }: With['escalate'][number],
  { call, prompt, approval, at }: Question,
): Promise<boolean> {
  const messages = channels()
  if (!messages) return false
  const id = stableId('workflow-escalation', approval.id, String(at))
  const text =
    `A workflow waits for an approval: ${prompt}\n\n` +
    `Answer with \`/approve ${approval.id}\` or \`/reject ${approval.id}\`, before ${approval.expiresAt}.`
  // Before it is sent: an operator of that account may answer there at once.
  await approvals()?.noteAsked(approval.id, { id, channel, to })
  try {
    await messages.send({ id, channel, to, text, ...omitUndefined({ account, thread }) })
    return true
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.code === 'service_unavailable' || error.code === 'rate_limit') return false
    log.warn(`step "${call.step}" of run ${call.runId} cannot ask ${channel} chat ${to}: ${error.message}`)
    return true
  }
}
