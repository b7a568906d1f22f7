import { randomUUID } from 'node:crypto'
import type * as v from 'valibot'
import { isObject } from 'svc/sdk'
import type { Part, StoredMessage } from './parts.ts'
import { ProtocolProblem } from './problem.ts'
import type { InputPart, NewTaskBody, ShownTask } from './schema.ts'
import type { TaskState } from './rows/store.ts'
import { isEnded } from './tasks.ts'
import type { Task } from './tasks.ts'

type InputPart = v.InferOutput<typeof InputPart>

/** What the interface and compatible services call the agent, the context and the message of a new task. */
export function decodeNewTask(body: NewTaskBody, effectId: string | undefined) {
  const params = body.params ?? {}
  const message = body.message ?? body.params?.message
  if (!message) throw new ProtocolProblem('RequestMalformed', 'message: is missing')
  const { role = 'user', parts, messageId, message_id: messageIdAlias } = message
  if (role !== null && !/^(?:user|role_user)$/i.test(role))
    throw new ProtocolProblem('RequestMalformed', 'message.role: must be user')
  const stored: StoredMessage = {
    messageId: firstOf(messageId, messageIdAlias, effectId) ?? randomUUID(),
    parts: parts.map((part, at) => toPart(part, `message.parts[${at}]`)),
    ...(message.metadata && { metadata: message.metadata }),
  }
  const names = { ...params, ...body }
  return {
    agent: firstOf(body.agent_id, body.agentId, text(params, 'agent_id'), text(params, 'agentId')),
    contextId: firstOf(
      names.context_id,
      names.contextId,
      names.session_id,
      names.sessionId,
      text(params, 'contextId'),
      text(params, 'sessionId'),
      message.contextId,
    ),
    message: stored,
  }
}
function text(from: object, name: string): string | undefined {
  const value = isObject(from) ? from[name] : undefined
  return typeof value === 'string' ? value : undefined
}
function firstOf(...values: readonly (string | null | undefined)[]): string | undefined {
  return values.find((value): value is string => value !== undefined && value !== null && value !== '')
}

function toPart(part: InputPart, where: string): Part {
  const kind = part.type ?? part.kind ?? guessKind(part)
  const filename = firstOf(part.filename, part.name)
  const mediaType = firstOf(part.mediaType, part.mimeType)
  const about = { ...(filename !== undefined && { filename }), ...(mediaType !== undefined && { mediaType }) }
  if (kind === 'text' && typeof part.text === 'string') return { text: part.text, ...about }
  if (kind === 'data' && part.data !== undefined) return { data: part.data, ...about }
  const raw = firstOf(part.raw, typeof part.data === 'string' ? part.data : undefined)
  if (kind === 'file' && raw !== undefined) return { raw, ...about }
  if (kind === 'file' && typeof part.url === 'string') return { url: part.url, ...about }
  throw new ProtocolProblem(
    'ContentTypeNotSupported',
    `${where}: must be {text}, {type: "file", mimeType, data} with base64, or {type: "data", data}`,
  )
}
function guessKind({ text: said, raw, url, data }: InputPart): string {
  if (typeof said === 'string') return 'text'
  if (typeof raw === 'string' || typeof url === 'string') return 'file'
  return data === undefined ? '' : 'data'
}

const STATUS: Readonly<Record<TaskState, v.InferOutput<typeof ShownTask>['status']>> = {
  submitted: 'submitted',
  working: 'working',
  completed: 'completed',
  failed: 'failed',
  canceled: 'cancelled',
}
export function fromStatus(status: v.InferOutput<typeof ShownTask>['status']): TaskState {
  return status === 'cancelled' ? 'canceled' : status
}

export function showMessages({ request, answer }: Task) {
  const said = { role: 'user', parts: request.parts.map(showPart) }
  return answer === '' ? [said] : [said, { role: 'agent', parts: [{ type: 'text', text: answer }] }]
}
export function showTask(task: Task): v.InferOutput<typeof ShownTask> {
  const parts = [{ type: 'text', text: task.answer }]
  const hasAnswer = task.answer !== ''
  return {
    task_id: task.id,
    id: task.id,
    agent_id: task.agentId,
    context_id: task.contextId,
    sessionId: task.contextId,
    status: STATUS[task.state],
    error: task.note ?? null,
    result: hasAnswer && isEnded(task) ? { role: 'agent', parts } : null,
    messages: showMessages(task),
    artifacts: hasAnswer ? [{ name: 'answer', parts, index: 0, lastChunk: isEnded(task) }] : [],
    created_at: task.createdAt,
    updated_at: task.updatedAt,
  }
}
function showPart({ text: said, raw, url, data, filename, mediaType }: Part) {
  const about = {
    ...(filename !== undefined && { name: filename }),
    ...(mediaType !== undefined && { mimeType: mediaType }),
  }
  if (said !== undefined) return { type: 'text', text: said }
  if (raw !== undefined) return { type: 'file', ...about, data: raw }
  if (url !== undefined) return { type: 'file', ...about, url }
  return { type: 'data', data }
}
