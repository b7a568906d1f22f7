import type {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task as WireTask,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import { Role, TaskState } from '@a2a-js/sdk'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import type { Agent } from '../../agents/contract.ts'
import { decodePageToken, encodePageToken } from './page-token.ts'
import { ProtocolProblem } from './problem.ts'
import type { NewPush, PushNotifications } from './push.ts'
import { streamTask } from './stream.ts'
import type { PushRow } from './rows/store.ts'
import { isEnded } from './tasks.ts'
import type { Task, TaskScope, TaskService } from './tasks.ts'
import { taskEvent, toState, toStored, toWireTask } from './wire.ts'

/** One request of a client: who asks, which agent, and in which version. */
export interface Caller {
  /** Answers the message. */
  readonly agent: () => Promise<Agent>
  readonly scope: TaskScope
  readonly version: PushRow['version']
  readonly signal: AbortSignal
}
export interface HandlerDeps {
  readonly tasks: TaskService
  readonly push: PushNotifications
  readonly card: (extended: boolean) => Promise<AgentCard>
  readonly now: () => string
  /** Translates what is thrown into errors of the protocol. */
  readonly translate: (error: unknown) => unknown
}

const MAX_PAGE = 100
const DEFAULT_PAGE = 50

/** Answers the requests of the protocol, in the shapes of the SDK, for one caller. */
export class RequestHandler implements A2ARequestHandler {
  readonly #deps: HandlerDeps
  readonly #caller: Caller
  constructor(deps: HandlerDeps, caller: Caller) {
    this.#deps = deps
    this.#caller = caller
  }

  getAgentCard(): Promise<AgentCard> {
    return this.#answer(() => this.#deps.card(false))
  }
  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return this.#answer(() => this.#deps.card(true))
  }

  sendMessage(request: SendMessageRequest): Promise<WireTask> {
    return this.#answer(async () => {
      const { returnImmediately = false, historyLength } = request.configuration ?? {}
      checkHistoryLength(historyLength)
      const task = await this.#begin(request)
      const last = returnImmediately || isEnded(task) ? task : await this.#deps.tasks.wait(task.id, this.#caller.signal)
      return toWireTask(last, { historyLength })
    })
  }
  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const historyLength = request.configuration?.historyLength
    const task = await this.#answer(() => {
      checkHistoryLength(historyLength)
      return this.#begin(request)
    })
    yield* this.#stream(task, historyLength)
  }
  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const task = await this.#answer(() => this.#require(id))
    if (isEnded(task))
      throw this.#deps.translate(
        new ProtocolProblem(
          'UnsupportedOperation',
          `Task ${id} is ${task.state}: there is nothing to follow; get it instead`,
        ),
      )
    yield* this.#stream(task, undefined)
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<WireTask> {
    return this.#answer(async () => {
      checkHistoryLength(historyLength)
      return toWireTask(await this.#require(id), { historyLength })
    })
  }
  listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#answer(() => this.#list(request))
  }
  cancelTask({ id }: CancelTaskRequest): Promise<WireTask> {
    return this.#answer(async () => {
      const { signal, scope } = this.#caller
      return toWireTask(await this.#deps.tasks.cancel(id, signal, scope))
    })
  }

  createTaskPushNotificationConfig(config: TaskPushNotificationConfig): Promise<TaskPushNotificationConfig> {
    return this.#answer(async () => {
      const task = await this.#require(config.taskId)
      return toConfig(await this.#deps.push.set(task.id, this.#toPush(config)))
    })
  }
  getTaskPushNotificationConfig(request: GetTaskPushNotificationConfigRequest): Promise<TaskPushNotificationConfig> {
    return this.#answer(async () => {
      const { push } = this.#deps
      const { id: taskId } = await this.#require(request.taskId)
      // Protocol 0.3 lets a client leave the id out.
      const [first] = request.id === '' ? await push.list(taskId) : []
      return toConfig(first ?? (await push.find(taskId, request.id)))
    })
  }
  listTaskPushNotificationConfigs(
    request: ListTaskPushNotificationConfigsRequest,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.#answer(async () => {
      const { id } = await this.#require(request.taskId)
      return { configs: (await this.#deps.push.list(id)).map(toConfig), nextPageToken: '' }
    })
  }
  deleteTaskPushNotificationConfig(request: DeleteTaskPushNotificationConfigRequest): Promise<void> {
    return this.#answer(async () => {
      const { id: taskId } = await this.#require(request.taskId)
      await this.#deps.push.remove(taskId, request.id)
    })
  }

  async #begin({ message, configuration }: SendMessageRequest): Promise<Task> {
    const { tasks, push } = this.#deps
    if (!message) throw new ProtocolProblem('RequestMalformed', 'message is required')
    if (message.role !== Role.ROLE_USER)
      throw new ProtocolProblem('RequestMalformed', 'message.role: must be that of the user')
    if (message.taskId !== '') await this.#refuseContinuation(message.taskId, message.contextId)
    const config = configuration?.taskPushNotificationConfig
    const wanted = config && this.#toPush(config)
    if (wanted) await push.check(wanted)
    return tasks.begin({
      agent: await this.#caller.agent(),
      owner: this.#caller.scope.owner,
      contextId: message.contextId === '' ? undefined : message.contextId,
      message: toStored(message),
      acceptedOutputModes: configuration?.acceptedOutputModes ?? [],
      ...(wanted && { also: (taskId: string) => push.prepare(taskId, wanted) }),
    })
  }
  /** A task is one turn of the agent, so a further message is a further task in the same context. */
  async #refuseContinuation(taskId: string, contextId: string): Promise<never> {
    const task = await this.#require(taskId)
    if (contextId !== '' && contextId !== task.contextId)
      throw new ProtocolProblem(
        'RequestMalformed',
        `message.contextId: task ${taskId} belongs to context ${task.contextId}, not to this one`,
      )
    throw new ProtocolProblem(
      'UnsupportedOperation',
      `Task ${taskId} is ${task.state} and takes no further message: ` +
        `send it without taskId, with contextId ${task.contextId}, and it becomes the next task there`,
    )
  }
  async #list(request: ListTasksRequest): Promise<ListTasksResponse> {
    const { pageSize = DEFAULT_PAGE, historyLength, status, contextId, pageToken, statusTimestampAfter } = request
    checkHistoryLength(historyLength)
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_PAGE)
      throw new ProtocolProblem('RequestMalformed', `pageSize: must be a whole number from 1 to ${MAX_PAGE}`)
    if (status === TaskState.UNRECOGNIZED) throw new ProtocolProblem('RequestMalformed', 'status: not a state of tasks')
    const state = toState(status)
    const { tasks } = this.#deps
    // A state that no task here is ever in.
    if (status !== TaskState.TASK_STATE_UNSPECIFIED && !state)
      return { tasks: [], nextPageToken: '', pageSize, totalSize: 0 }
    const found = await tasks.list({
      ...this.#caller.scope,
      contextId: contextId === '' ? undefined : contextId,
      state,
      since: statusTimestampAfter === undefined ? undefined : toTimestamp(statusTimestampAfter),
      after: pageToken === '' ? undefined : decodePageToken(pageToken),
      limit: pageSize + 1,
    })
    const page = found.tasks.slice(0, pageSize)
    const last = found.tasks.length > pageSize ? page.at(-1) : undefined
    return {
      tasks: page.map((task) =>
        toWireTask(task, { historyLength, withoutArtifacts: request.includeArtifacts !== true }),
      ),
      nextPageToken: last ? encodePageToken(last) : '',
      pageSize,
      totalSize: found.total,
    }
  }
  async *#stream(task: Task, historyLength: number | undefined): AsyncGenerator<StreamResponse, void, undefined> {
    const { tasks, now, translate } = this.#deps
    const { signal } = this.#caller
    try {
      // A repeated message may find its task at the end already.
      if (isEnded(task)) yield taskEvent(task, historyLength)
      else
        yield* streamTask(
          task,
          tasks.follow(task.id, signal),
          { now, ended: ({ id }) => tasks.wait(id, signal) },
          historyLength,
        )
    } catch (error) {
      throw translate(error)
    }
  }
  #require(id: string): Promise<Task> {
    return this.#deps.tasks.require(id, this.#caller.scope)
  }
  #toPush({ id, url, token, authentication }: TaskPushNotificationConfig): NewPush {
    const { version } = this.#caller
    return { id: id === '' ? undefined : id, url, token, authentication, version }
  }
  async #answer<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.#deps.translate(error)
    }
  }
}

function checkHistoryLength(length: number | undefined): void {
  if (length === undefined || (Number.isInteger(length) && length >= 0)) return
  throw new ProtocolProblem('RequestMalformed', 'historyLength: must be a whole number from 0')
}
function toTimestamp(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new ProtocolProblem('RequestMalformed', 'statusTimestampAfter: must be an ISO 8601 date')
  return new Date(ms).toISOString()
}
/** Without token and credentials, which are never shown again. */
function toConfig({ id, task_id: taskId, url, scheme }: PushRow): TaskPushNotificationConfig {
  const authentication = scheme === null ? undefined : { scheme, credentials: '' }
  return { tenant: '', id, taskId, url, token: '', authentication }
}
