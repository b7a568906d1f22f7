import { omitUndefined, Refusal } from 'svc/sdk'
import type { DeliveryTarget } from '../result-delivery/contract.ts'
import type { JobBody } from './body.ts'
import { textOf } from './job.ts'
import type { Action, Job } from './job.ts'
import { readPhrase } from './timing/phrase.ts'
import { checkTiming } from './timing/timing.ts'
import type { Timing } from './timing/timing.ts'

const MAX_NAME = 128

/** What a body says, in one spelling. */
export interface JobInput {
  readonly name?: string
  /** Id or name. */
  readonly agent?: string
  readonly timing?: Timing
  readonly action?: Action
  readonly targets?: readonly DeliveryTarget[]
  readonly missed?: 'skip' | 'once'
  readonly sessionMode?: 'new' | 'persistent' | undefined
  readonly oneShot?: boolean
  readonly enabled?: boolean
}

/** Throws `invalid_request` for what contradicts itself or never occurs. `before`: the job that is changed. */
export function readInput(body: JobBody, now: number, before?: Job): JobInput {
  const timing = readTiming(body, now, before?.timing)
  if (timing) checkTiming(timing, now)
  return {
    ...omitUndefined({
      name: body.name,
      agent: body.agent_id,
      timing,
      action: readAction(body, before?.action),
      targets: body.delivery_targets ?? (body.delivery ? targetsOf(body.delivery) : undefined),
      missed: body.missed,
      oneShot: body.one_shot,
      enabled: body.enabled,
    }),
    ...(body.delivery === null && body.delivery_targets === undefined && { targets: [] }),
    ...(body.session_mode !== undefined && { sessionMode: body.session_mode ?? undefined }),
  }
}
const targetsOf = (target: DeliveryTarget): readonly DeliveryTarget[] => (target.kind === 'none' ? [] : [target])

function readTiming(
  { cron, phrase, schedule, tz }: JobBody,
  now: number,
  before: Timing | undefined,
): Timing | undefined {
  if (cron !== undefined && typeof schedule === 'string' && schedule !== cron)
    throw new Refusal('invalid_request', 'schedule: it differs from cron, and both mean the same; give one of them')
  const given = schedule ?? cron ?? (phrase === undefined ? undefined : readPhrase(phrase))
  const zoneBefore = before?.kind === 'cron' ? before.tz : undefined
  if (given === undefined) {
    if (tz === undefined || before === undefined) return undefined
    if (before.kind !== 'cron') throw new Refusal('invalid_request', 'tz: only a cron expression has a time zone')
    return { ...before, tz: tz ?? 'UTC' }
  }
  return toTiming(given, tz ?? undefined, zoneBefore, now)
}
function toTiming(
  given: Exclude<JobBody['schedule'], undefined>,
  tz: string | undefined,
  zoneBefore: string | undefined,
  now: number,
): Timing {
  if (typeof given === 'string') return { kind: 'cron', expr: given.trim(), tz: tz ?? zoneBefore ?? 'UTC' }
  if (given.kind === 'cron') return { kind: 'cron', expr: given.expr.trim(), tz: given.tz ?? tz ?? 'UTC' }
  if (given.kind === 'at') return { kind: 'at', at: Date.parse(given.at) }
  return { kind: 'every', every_secs: given.every_secs, from: now }
}

function readAction(body: JobBody, before: Action | undefined): Action | undefined {
  const { prompt, message, action, workflow_id: workflow } = body
  if (prompt !== undefined && message !== undefined && prompt !== message)
    throw new Refusal('invalid_request', 'message: it differs from prompt, and both mean the same; give one of them')
  const text = prompt ?? message
  if (action === undefined && typeof workflow === 'string')
    return { kind: 'workflow', workflow_id: workflow, ...omitUndefined({ input: text }) }
  if (action === undefined) return text === undefined ? undefined : withText(text, before)
  if (action.kind === 'workflow') return readWorkflow(action, text, workflow)
  if (typeof workflow === 'string')
    throw new Refusal('invalid_request', `workflow_id: the action is of the kind ${action.kind}; give one of them`)
  if (action.kind === 'system_event') return action
  const { message: said, model_override: model, timeout_secs: secs } = action
  return {
    kind: 'agent_turn',
    message: text ?? said,
    ...omitUndefined({ model_override: model ?? undefined, timeout_secs: secs ?? undefined }),
  }
}

function withText(text: string, before: Action | undefined): Action {
  if (before?.kind === 'agent_turn') return { ...before, message: text }
  return before?.kind === 'workflow' ? { ...before, input: text } : { kind: 'agent_turn', message: text }
}
function readWorkflow(
  action: Extract<JobBody['action'], { readonly kind: 'workflow' }>,
  text: string | undefined,
  workflow: string | null | undefined,
): Action {
  if (typeof workflow === 'string' && workflow !== action.workflow_id)
    throw new Refusal('invalid_request', 'workflow_id: it differs from that of the action; give one of them')
  const { kind, workflow_id, input, timeout_secs: secs } = action
  return { kind, workflow_id, ...omitUndefined({ input: text ?? input ?? undefined, timeout_secs: secs ?? undefined }) }
}

/** The first words of a prompt, of the characters that a name may have. */
export function nameFrom(action: Action): string {
  const words = textOf(action)
    .replaceAll(/[^\p{L}\p{N} _-]+/gu, ' ')
    .trim()
    .split(/\s+/)
    .slice(0, 6)
    .join(' ')
  return words.slice(0, Math.min(MAX_NAME, 60)).trim() || 'schedule'
}
