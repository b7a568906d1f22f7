import type { StreamResponse } from '@a2a-js/sdk'
import type { TurnEvent } from '../../chat/contract.ts'
import type { TaskState } from './rows/store.ts'
import type { Task } from './tasks.ts'
import { taskEvent, toArtifact, toStatus } from './wire.ts'

export interface StreamDeps {
  readonly now: () => string
  /** The task as it is recorded when it has ended. */
  readonly ended: (task: Task) => Promise<Task>
}

/**
 * A task and what happens in it: the task first, then states, and the answer as an artifact that grows. Everything
 * comes from the start, so that whoever lost a stream loses nothing by another one.
 */
export async function* streamTask(
  task: Task,
  events: AsyncIterable<TurnEvent>,
  deps: StreamDeps,
  historyLength?: number,
): AsyncGenerator<StreamResponse, void, undefined> {
  const fresh: Task = { ...task, answer: '' }
  yield taskEvent(fresh, historyLength)
  const progress = new Progress(task, deps.now)
  let brokeOff = false
  try {
    for await (const event of events) yield* progress.take(event)
  } catch {
    // Why a task failed is on record. What broke off for another reason goes on elsewhere, and its record is awaited.
    brokeOff = true
  }
  yield* progress.end(await deps.ended(task), brokeOff)
}

class Progress {
  readonly #task: Task
  readonly #now: () => string
  #state: TaskState
  #hasText = false
  constructor(task: Task, now: () => string) {
    this.#task = task
    this.#state = task.state
    this.#now = now
  }

  *take(event: TurnEvent): Generator<StreamResponse> {
    if (event.type === 'phase' && event.phase === 'queued') return
    if (event.type === 'end') return
    const note = event.type === 'phase' && event.detail !== '' ? event.detail : undefined
    if (this.#state === 'submitted' || note !== undefined) yield this.#status('working', note, this.#now())
    if (event.type === 'text' && event.delta !== '') yield this.#answer(event.delta, false)
  }
  *end({ state, answer, note, updatedAt }: Task, isIncomplete: boolean): Generator<StreamResponse> {
    if (isIncomplete && answer !== '') {
      this.#hasText = false
      yield this.#answer(answer, true)
    } else if (this.#hasText) yield this.#answer('', true)
    yield this.#status(state, note, updatedAt)
  }

  #status(state: TaskState, note: string | undefined, at: string): StreamResponse {
    this.#state = state
    const { id: taskId, contextId } = this.#task
    const status = toStatus(this.#task, state, note, at)
    return { payload: { $case: 'statusUpdate', value: { taskId, contextId, status, metadata: undefined } } }
  }
  #answer(text: string, lastChunk: boolean): StreamResponse {
    const { id: taskId, contextId } = this.#task
    const append = this.#hasText
    this.#hasText = true
    const value = { taskId, contextId, artifact: toArtifact(text), append, lastChunk, metadata: undefined }
    return { payload: { $case: 'artifactUpdate', value } }
  }
}
