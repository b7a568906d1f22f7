import * as v from 'valibot'
import { escapeControls, exits, Failure, isObject, omitUndefined, renderDuration, renderFacts, shorten } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { describeField } from './form.ts'

const FormField = v.looseObject({
  name: v.string(),
  kind: v.string(),
  title: v.optional(v.string(), ''),
  description: v.optional(v.string(), ''),
  required: v.optional(v.boolean(), false),
  format: v.optional(v.string()),
  minimum: v.optional(v.number()),
  maximum: v.optional(v.number()),
  options: v.optional(v.array(v.object({ value: v.string(), title: v.string() }))),
  default: v.optional(v.unknown()),
})
export type FormField = v.InferOutput<typeof FormField>
export const Approval = v.looseObject({
  id: v.string(),
  agent_id: v.optional(v.string(), ''),
  agent_name: v.optional(v.string(), ''),
  session_id: v.optional(v.string(), ''),
  tool_name: v.optional(v.string(), ''),
  action_summary: v.optional(v.string(), ''),
  description: v.optional(v.string(), ''),
  intent: v.optional(v.string(), ''),
  payload: v.optional(v.unknown()),
  risk_level: v.optional(v.string(), ''),
  scopes: v.optional(v.array(v.string()), []),
  session_covers: v.nullish(v.string()),
  status: v.string(),
  requested_at: v.optional(v.string(), ''),
  expires_at: v.optional(v.string(), ''),
  decided_at: v.nullish(v.string()),
  decided_by: v.nullish(v.string()),
  approvals_needed: v.optional(v.number(), 1),
  first_approved_by: v.nullish(v.string()),
  form: v.nullish(v.object({ title: v.nullish(v.string()), fields: v.array(FormField) })),
  content: v.nullish(v.record(v.string(), v.unknown())),
})
export type Approval = v.InferOutput<typeof Approval>
export const ApprovalList = v.looseObject({ approvals: v.array(Approval) })
const Decided = v.looseObject({ id: v.string(), status: v.string() })

/** An approval by its id or by how its id begins. Throws a `Failure` that names those that wait. */
export async function requireApproval(client: DaemonClient, idPrefix: string): Promise<Approval> {
  const { approvals } = await client.call('GET', '/api/approvals', ApprovalList)
  const exact = approvals.find(({ id }) => id === idPrefix)
  if (exact) return exact
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(idPrefix)) return client.call('GET', `/api/approvals/${idPrefix}`, Approval)
  const found = idPrefix === '' ? [] : approvals.filter(({ id }) => id.startsWith(idPrefix))
  if (found[0] && found.length === 1) return found[0]
  const waiting = approvals.filter(({ status }) => status === 'pending').map(({ id }) => id)
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${idPrefix}" is the beginning of ${found.length} ids`,
      `give more of it: ${found.map(({ id }) => id).join(', ')}`,
    )
  throw new Failure(
    exits.notFound,
    `there is no approval "${idPrefix}"`,
    waiting.length === 0 ? 'nothing waits for approval' : `pending: ${waiting.join(', ')}`,
  )
}

interface DecideOptions {
  readonly scope?: 'once' | 'session'
  /** What is filled in where the approval has a form. */
  readonly fill?: (approval: Approval) => Promise<FormAnswers | undefined> | FormAnswers | undefined
  /** Of a rejection; the agent reads it. */
  readonly reason?: string | undefined
}
/** As typed: the daemon reads text as what the field is. */
export type FormAnswers = Readonly<Record<string, string>>
/** Answers a request. Throws what the daemon refused. */
export async function decide(
  client: DaemonClient,
  verb: 'approve' | 'reject',
  idPrefix: string,
  { scope = 'once', fill, reason }: DecideOptions = {},
) {
  const approval = await requireApproval(client, idPrefix)
  const content = verb === 'approve' ? await fill?.(approval) : undefined
  const body = omitUndefined({ scope: scope === 'session' ? scope : undefined, content, reason })
  const answer = await client.call(
    'POST',
    `/api/approvals/${approval.id}/${verb}`,
    Decided,
    Object.keys(body).length > 0 ? { body } : {},
  )
  return { approval, answer }
}

/** Exactly what would be done, as lines; the summary where the request is too large for a list. */
export function linesOf({ tool_name: tool, payload, action_summary: summary }: Approval): readonly string[] {
  if (!isObject(payload)) return [escapeControls(summary)]
  const { command, args, ...rest } = payload
  const words = Array.isArray(args)
    ? args.map((word) => (/^[\w./:=@%+,-]+$/.test(String(word)) ? String(word) : JSON.stringify(word)))
    : []
  const first = typeof command === 'string' ? [[command, ...words].join(' ')] : [tool]
  const others = Object.entries(typeof command === 'string' ? rest : payload).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const lines = [...first, ...others]
    .flatMap((line) => line.split('\n'))
    .map((line) => shorten(escapeControls(line), 400))
  return lines.length > 12
    ? [...lines.slice(0, 12), `… and ${lines.length - 12} more lines: the details have them`]
    : lines
}

/** The question in one sentence, and below it the action. */
export function renderQuestion(approval: Approval, bold: (text: string) => string): string {
  const { agent_name: agent, intent, tool_name: tool, description } = approval
  return [
    `${escapeControls(agent)} wants to ${escapeControls(intent || `use ${tool}`)} and waits for your answer ` +
      `(${timeLeft(approval)} left, then it counts as no):`,
    '',
    ...linesOf(approval).map((line) => `    ${bold(line)}`),
    '',
    ...(description === '' ? [] : [`  ${escapeControls(description)}`, '']),
    ...(approval.form ? [...approval.form.fields.map((field) => `  ${describeField(field)}`), ''] : []),
  ].join('\n')
}

/** The letters that answer. */
export const lettersOf = ({ scopes }: Pick<Approval, 'scopes'>): string =>
  scopes.includes('session') ? 'y, s or n' : 'y or n'
/** The answers that one letter gives. */
export function renderChoices({ scopes, session_covers: covers, form }: Approval): string {
  return [
    form ? '  y  yes: asks for each field' : '  y  yes, once',
    ...(scopes.includes('session')
      ? [`  s  yes, for this conversation${covers ? `: ${escapeControls(covers)}` : ''}`]
      : []),
    '  n  no; a few words after it tell the agent why',
    '  d  details',
  ].join('\n')
}

/** All that is known of a request. */
export async function renderDetails(client: DaemonClient, id: string): Promise<string> {
  const approval = await client.call('GET', `/api/approvals/${id}`, Approval)
  const facts = renderFacts([
    ['id', approval.id],
    ['agent', `${approval.agent_name} (${approval.agent_id})`],
    ['tool', approval.tool_name],
    ['risk', approval.risk_level],
    ['session', approval.session_id],
    ['asked', approval.requested_at],
    ['until', approval.expires_at],
    ['status', approval.status],
    ...(approval.approvals_needed > 1 ? [['people', describePeople(approval)] as const] : []),
    ...(approval.content ? [['answer', escapeControls(JSON.stringify(approval.content))] as const] : []),
    ...(approval.decided_by ? [['decided', `${approval.decided_at ?? ''} by ${approval.decided_by}`] as const] : []),
  ])
  const form = approval.form ? `\n${approval.form.fields.map(describeField).join('\n')}` : ''
  return `${facts}\n${escapeControls(JSON.stringify(approval.payload ?? {}, null, 2), true)}${form}`
}

/** How many people have to approve, and who has. */
function describePeople({ approvals_needed: needed, first_approved_by: first }: Approval): string {
  return `${needed} have to approve${first ? `; ${escapeControls(first)} has` : ''}`
}

export function timeLeft({ expires_at: until }: Pick<Approval, 'expires_at'>): string {
  const secs = (Date.parse(until) - Date.now()) / 1000
  return Number.isFinite(secs) ? renderDuration(Math.max(0, Math.round(secs))) : 'some time'
}
