import { Message, Role, TaskState } from '@a2a-js/sdk'
import type { Artifact, Part as WirePart, StreamResponse, Task as WireTask, TaskStatus } from '@a2a-js/sdk'
import { stableId } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import type { Part, StoredMessage } from './parts.ts'
import type { TaskState as State } from './rows/store.ts'
import type { Task } from './tasks.ts'

/** The answer of an agent is one artifact, which grows while it answers. */
export const ANSWER = 'answer'

const STATES: Readonly<Record<State, TaskState>> = {
  submitted: TaskState.TASK_STATE_SUBMITTED,
  working: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  canceled: TaskState.TASK_STATE_CANCELED,
}
/** `undefined` for a state that no task here ever has. */
export function toState(state: TaskState): State | undefined {
  for (const [name, value] of Object.entries(STATES)) if (value === state) return name as State
  return undefined
}

/** `historyLength`: messages at most; all of them when absent. */
export function toWireTask(
  task: Task,
  options: { readonly historyLength?: number | undefined; readonly withoutArtifacts?: boolean } = {},
): WireTask {
  const { id, contextId, request, answer } = task
  const wanted = options.historyLength ?? 1
  const history = wanted > 0 ? [toWireMessage(request, { taskId: id, contextId })] : []
  const artifacts = options.withoutArtifacts || answer === '' ? [] : [toArtifact(answer)]
  return {
    id,
    contextId,
    status: toStatus(task, task.state, task.note, task.updatedAt),
    artifacts,
    history,
    metadata: undefined,
  }
}
export function toStatus(
  { id, contextId }: Pick<Task, 'id' | 'contextId'>,
  state: State,
  note: string | undefined,
  at: string,
): TaskStatus {
  const message: Message | undefined =
    note === undefined
      ? undefined
      : {
          messageId: stableId('a2a-note', id, state, note),
          contextId,
          taskId: id,
          role: Role.ROLE_AGENT,
          parts: [toText(note)],
          metadata: undefined,
          extensions: [],
          referenceTaskIds: [],
        }
  return { state: STATES[state], message, timestamp: at }
}
export function toArtifact(text: string): Artifact {
  return {
    artifactId: ANSWER,
    name: 'answer',
    description: '',
    parts: [toText(text)],
    metadata: undefined,
    extensions: [],
  }
}
function toText(text: string): WirePart {
  return { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }
}

function toWireMessage(message: StoredMessage, ids: { readonly taskId: string; readonly contextId: string }): Message {
  return Message.fromJSON({ ...message, ...ids, role: 'ROLE_USER' })
}
/** What is kept of a message of a client. */
export function toStored({ messageId, parts, metadata, extensions, referenceTaskIds }: Message): StoredMessage {
  return {
    messageId,
    parts: parts.map(toPart),
    ...omitUndefined({ metadata }),
    ...(extensions.length > 0 && { extensions }),
    ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
  }
}
function toPart({ content, metadata, filename, mediaType }: WirePart): Part {
  return {
    ...(content?.$case === 'text' && { text: content.value }),
    ...(content?.$case === 'raw' && { raw: content.value.toString('base64') }),
    ...(content?.$case === 'url' && { url: content.value }),
    ...(content?.$case === 'data' && { data: content.value as unknown }),
    ...(filename !== '' && { filename }),
    ...(mediaType !== '' && { mediaType }),
    ...omitUndefined({ metadata }),
  }
}

export function taskEvent(task: Task, historyLength?: number): StreamResponse {
  return { payload: { $case: 'task', value: toWireTask(task, { historyLength }) } }
}
