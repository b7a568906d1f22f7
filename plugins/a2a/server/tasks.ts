import { hash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson, orAborted, readOwnJson, sleep, stableId } from 'svc/internal'
import type { Clock, HopLimit } from 'svc/internal'
import { KeyedQueue } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { AcceptedTurn, Chat, Turns, TurnEvent, TurnView } from '../../chat/contract.ts'
import type { A2aTask } from '../contract.ts'
import { readHopCount } from '../hops.ts'
import { checkOutputModes, readParts, StoredMessage } from './parts.ts'
import { ProtocolProblem } from './problem.ts'
import { endStates } from './rows/store.ts'
import type { TaskFilter, TaskRow, TaskState, TaskStore } from './rows/store.ts'

export interface TaskServiceDeps {
  readonly store: TaskStore
  readonly chat: Pick<Chat, 'accept' | 'attach' | 'cancel' | 'follow'>
  readonly turns: Pick<Turns, 'find' | 'replay'>
  readonly audit: Pick<Audit, 'entry'>
  readonly maxParts: number
  readonly hopLimit: HopLimit
  readonly clock: Clock
  /** Statements that belong to the batch in which a task ends. */
  readonly ending: (taskId: string) => Promise<readonly Statement[]>
  readonly changed: (task: A2aTask) => Promise<void>
}
/** A task as it stands. */
export interface Task extends A2aTask {
  readonly request: StoredMessage
  /** What the agent said so far. */
  readonly answer: string
  /** Why it waits or failed. */
  readonly note: string | undefined
  readonly createdAt: string
  /** When the state changed last, as far as it is known. ISO 8601 UTC. */
  readonly updatedAt: string
}
export interface NewTask {
  readonly agent: Agent
  /** Whose task it is; `''`: of whoever holds the key. */
  readonly owner: string
  readonly contextId: string | undefined
  readonly message: StoredMessage
  readonly acceptedOutputModes: readonly string[]
  /** Statements for the batch that makes the task. */
  readonly also?: (taskId: string) => Promise<readonly Statement[]>
}

/** Which tasks a caller knows of. */
export interface TaskScope {
  /** Those of this agent; `undefined`: of all. */
  readonly agentId: string | undefined
  /** Those of this caller; `''`: of all. */
  readonly owner: string
}
const EVERYTHING: TaskScope = { agentId: undefined, owner: '' }

const POLL_MS = 500
const MAX_SETTLED = 1_000
const MAX_ID = 256
const ended: ReadonlySet<string> = new Set(endStates)
export const isEnded = ({ state }: Pick<A2aTask, 'state'>): boolean => ended.has(state)

const STATES: Readonly<Record<TurnView['state'], TaskState>> = {
  queued: 'submitted',
  running: 'working',
  waiting: 'working',
  done: 'completed',
  failed: 'failed',
  interrupted: 'failed',
  cancelled: 'canceled',
}

/** Tasks of other programs. A task is a turn with the same id; the rows here hold what the journal does not. */
export class TaskService {
  readonly #deps: TaskServiceDeps
  readonly #perTask = new KeyedQueue()
  constructor(deps: TaskServiceDeps) {
    this.#deps = deps
  }

  /** Settles when the task is durable. A repeated message gets the task that it made before. */
  async begin(request: NewTask): Promise<Task> {
    const { agent, owner, message } = request
    checkId('message.messageId', message.messageId)
    if (request.contextId !== undefined) checkId('message.contextId', request.contextId)
    checkOutputModes(request.acceptedOutputModes)
    const hops = readHopCount(message.metadata, this.#deps.hopLimit)
    // Some clients give every message the same id: only with the same content it is the same message.
    const fingerprint = hash('sha256', canonicalJson(message.parts))
    const contextId = request.contextId ?? stableId('a2a-context', agent.id, owner, message.messageId, fingerprint)
    const id = stableId('a2a', agent.id, owner, contextId, message.messageId, fingerprint)
    return this.#read(await this.exclusive(id, () => this.#insert(request, { id, contextId, fingerprint, hops })))
  }
  /** Nothing else begins or ends the task meanwhile. */
  exclusive<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#perTask.run(id, work)
  }
  async #insert(request: NewTask, ids: TaskFacts): Promise<TaskRow> {
    const { store } = this.#deps
    const known = await store.find(ids.id)
    if (known) return known
    try {
      return await this.#accept(request, ids)
    } catch (error) {
      // Another daemon on the same database may have been faster.
      const made = await store.find(ids.id)
      if (!made) throw error
      return made
    }
  }
  async #accept(
    { agent, owner, message, also }: NewTask,
    { id, contextId, fingerprint, hops }: TaskFacts,
  ): Promise<TaskRow> {
    const { store, chat, audit, clock, maxParts, changed } = this.#deps
    const { text, images } = await readParts(message.parts, maxParts)
    // A context that was named by a client never becomes the id of a session: it could be that of another one.
    const derived = stableId('a2a-session', agent.id, ...(owner === '' ? [] : [owner]), contextId)
    const sessionId = (await store.sessionOf(agent.id, owner, contextId)) ?? derived
    const at = new Date(clock.now()).toISOString()
    const row: TaskRow = {
      id,
      agent_id: agent.id,
      owner,
      context_id: contextId,
      session_id: sessionId,
      message_id: message.messageId,
      fingerprint,
      message: JSON.stringify(message),
      state: 'submitted',
      created_at: at,
      updated_at: at,
    }
    const details = `task ${id} in context ${contextId} received over A2A`
    await chat.accept({ id, agentId: agent.id, sessionId, text, images, entryPoint: 'a2a', hops }, [
      store.insert(row),
      audit.entry({ event: 'a2a_task_received', agentId: agent.id, details }),
      ...((await also?.(id)) ?? []),
    ])
    await changed({ id, agentId: agent.id, contextId, state: row.state })
    return row
  }

  async find(id: string, scope = EVERYTHING): Promise<Task | undefined> {
    const row = await this.#deps.store.find(id)
    return row && isIn(scope, row) ? this.#read(row) : undefined
  }
  async require(id: string, scope = EVERYTHING): Promise<Task> {
    checkId('The id of the task', id)
    const task = await this.find(id, scope)
    if (!task) throw new ProtocolProblem('TaskNotFound', `Task not found: ${id}`)
    return task
  }
  async list(filter: TaskFilter): Promise<{ readonly tasks: readonly Task[]; readonly total: number }> {
    const { store } = this.#deps
    if (filter.contextId !== undefined) checkId('contextId', filter.contextId)
    await this.settleOpen()
    const [rows, total] = await Promise.all([store.list(filter), store.count(filter)])
    return { tasks: await Promise.all(rows.map((row) => this.#read(row))), total }
  }

  /** The task when it has ended. Throws the reason of the signal. */
  async wait(id: string, signal: AbortSignal): Promise<Task> {
    for (;;) {
      const turn = await this.#follow(id)
      if (turn) await orAborted(turn.result().then(nothing, nothing), signal)
      const task = await this.require(id)
      if (isEnded(task)) return task
      // It runs in another daemon, or has yet to be resumed.
      await sleep(this.#deps.clock, POLL_MS, signal)
    }
  }
  /** What happens in a task from its start; ends with the task, and throws why it failed. */
  async *follow(id: string, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const { turns, clock } = this.#deps
    for (;;) {
      const turn = await this.#follow(id)
      if (turn) return yield* abortable(turn.events(), signal)
      if (isEnded(await this.require(id))) {
        const replayed = await turns.replay(id)
        if (replayed) yield* abortable(replayed.events(), signal)
        return
      }
      await sleep(clock, POLL_MS, signal)
    }
  }

  /** The turn of a task that waits or runs, at whatever daemon on the database. */
  async #follow(id: string): Promise<Pick<AcceptedTurn, 'events' | 'result'> | undefined> {
    return this.#deps.chat.attach(id) ?? this.#deps.chat.follow(id)
  }

  /** The task after it was cancelled. Throws when it has ended otherwise. */
  async cancel(id: string, signal: AbortSignal, scope: TaskScope): Promise<Task> {
    const before = await this.require(id, scope)
    if (before.state === 'canceled') return before
    if (isEnded(before))
      throw new ProtocolProblem('TaskNotCancelable', `Task cannot be canceled: ${id} is ${before.state}`)
    this.#deps.chat.cancel(id)
    const after = await this.wait(id, signal)
    if (after.state === 'canceled') return after
    throw new ProtocolProblem('TaskNotCancelable', `Task cannot be canceled: ${id} is ${after.state} meanwhile`)
  }

  /** Records the end of a task when its turn has ended. */
  async settle(id: string): Promise<void> {
    const row = await this.#deps.store.find(id)
    if (row) await this.#read(row)
  }
  /** The same for those whose end nobody saw, as the process died or another daemon answered them. */
  async settleOpen(): Promise<void> {
    for (const row of await this.#deps.store.open(MAX_SETTLED)) await this.#read(row)
  }

  async #read(row: TaskRow): Promise<Task> {
    const task = toTask(row, await this.#deps.turns.find(row.id))
    if (task.state === row.state) return task
    const { store, clock } = this.#deps
    const at = new Date(clock.now()).toISOString()
    if (!isEnded(task)) {
      await store.commit([store.begin(row.id, at)])
      return { ...task, updatedAt: at }
    }
    await this.exclusive(row.id, () => this.#end(task, at))
    // Somebody else may have seen the end before.
    return { ...task, updatedAt: (await store.find(row.id))?.updated_at ?? at }
  }
  async #end({ id, agentId, contextId, state }: Task, at: string): Promise<void> {
    const { store, ending, changed } = this.#deps
    const [end] = await store.commit([store.end(id, state, at), ...(await ending(id))])
    if (end?.changes) await changed({ id, agentId, contextId, state })
  }
}

interface TaskFacts {
  readonly id: string
  readonly contextId: string
  readonly fingerprint: string
  readonly hops: number
}
function isIn({ agentId, owner }: TaskScope, row: TaskRow): boolean {
  return (agentId === undefined || row.agent_id === agentId) && (owner === '' || row.owner === owner)
}

function nothing(): void {
  /* How it ended is on record. */
}
function checkId(where: string, id: string): void {
  if (id.trim() === '') throw new ProtocolProblem('RequestMalformed', `${where} is required`)
  if (!id.isWellFormed()) throw new ProtocolProblem('RequestMalformed', `${where}: has half of a character`)
  if (/\p{Cc}/u.test(id)) throw new ProtocolProblem('RequestMalformed', `${where}: has a control character`)
  if (id.length > MAX_ID) throw new ProtocolProblem('RequestMalformed', `${where}: at most ${MAX_ID} characters`)
}
function toTask(row: TaskRow, turn: TurnView | undefined): Task {
  // An end that is on record stands, also when the turn is gone or was retried.
  const state = ended.has(row.state) || !turn ? row.state : STATES[turn.state]
  return {
    id: row.id,
    agentId: row.agent_id,
    contextId: row.context_id,
    state,
    request: v.parse(StoredMessage, readOwnJson(row.message)),
    answer: turn?.text ?? '',
    note: noteOf(state, turn),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
function noteOf(state: TaskState, turn: TurnView | undefined): string | undefined {
  if (state === 'failed') return turn?.failure?.message ?? turn?.error ?? 'The agent was interrupted'
  if (state === 'working' && turn?.state === 'waiting') return 'A person has to approve what the agent is about to do'
  return undefined
}

/** Ends with the signal, also while the next event is awaited. */
async function* abortable(events: AsyncIterable<TurnEvent>, signal: AbortSignal): AsyncGenerator<TurnEvent> {
  const reader = events[Symbol.asyncIterator]()
  try {
    for (;;) {
      const step = await orAborted(reader.next(), signal)
      if (step.done) return
      yield step.value
    }
  } finally {
    await reader.return?.()
  }
}
