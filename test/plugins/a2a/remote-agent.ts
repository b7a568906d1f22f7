import { AgentCard, Role, TaskState } from '@a2a-js/sdk'
import type { Message } from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server'
import type { AgentExecutor, ExecutionEventBus } from '@a2a-js/sdk/server'
import { readJson } from 'svc/sdk'
import { isObject } from 'svc/sdk'
import { startVendor } from '../../support/vendor-server.ts'
import type { Answering, RecordedCall, VendorServer } from '../../support/vendor-server.ts'

export type Version = '0.3' | '1.0'

const message = (text: string, id: string, contextId: string, taskId: string): Message => ({
  messageId: id,
  contextId,
  taskId,
  role: Role.ROLE_AGENT,
  parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

/** What the agent does with a text: `slow` works until it is told, `which` asks back, `hi` is answered at once. */
class Executor implements AgentExecutor {
  readonly texts: string[] = []
  readonly #ends = new Map<string, () => void>()

  finishAll(): void {
    for (const end of this.#ends.values()) end()
  }
  async execute(...[{ userMessage, taskId, contextId }, bus]: Parameters<AgentExecutor['execute']>): Promise<void> {
    const content = userMessage.parts[0]?.content
    const text = content?.$case === 'text' ? content.value : ''
    this.texts.push(text)
    const status = (state: TaskState, said?: string) => ({
      state,
      message: said === undefined ? undefined : message(said, `m-${taskId}`, contextId, taskId),
      timestamp: undefined,
    })
    if (text === 'hi') {
      bus.publish(AgentEvent.message(message('hi yourself', 'm-1', contextId, '')))
      return bus.finished()
    }
    const start = (state: TaskState): void =>
      bus.publish(
        AgentEvent.task({
          id: taskId,
          contextId,
          status: status(state),
          artifacts: [],
          history: [userMessage],
          metadata: undefined,
        }),
      )
    const end = (state: TaskState, said?: string): void => {
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, said), metadata: undefined }))
      bus.finished()
    }
    start(TaskState.TASK_STATE_WORKING)
    if (text === 'which') return end(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which one?')
    if (text === 'fail') return end(TaskState.TASK_STATE_FAILED, 'I cannot do that')
    const finish = (): void => {
      publishText(bus, { taskId, contextId }, `echo: ${text}`)
      end(TaskState.TASK_STATE_COMPLETED)
    }
    if (text !== 'slow') return finish()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ends.set(taskId, () => {
      finish()
      resolve()
    })
    await promise
  }
  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    const status = { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: undefined }
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status, metadata: undefined }))
    bus.finished()
    this.#ends.delete(taskId)
  }
}
function publishText(
  bus: ExecutionEventBus,
  { taskId, contextId }: { readonly taskId: string; readonly contextId: string },
  text: string,
): void {
  const part = { content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' }
  const artifact = {
    artifactId: 'a-1',
    name: '',
    description: '',
    parts: [part],
    metadata: undefined,
    extensions: [],
  }
  bus.publish(
    AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined }),
  )
}

type Fields = Readonly<Record<string, unknown>>
/** A card of protocol 0.3 or 1.0, as an agent of that version would serve it. */
export function cardOf(version: Version, origin: string, change: Fields = {}): Fields {
  const skills = [{ id: 'echo', name: 'Echo', description: 'Says it again.', tags: ['test'] }]
  const common = {
    name: `Echo ${version}`,
    description: 'Repeats what it hears.',
    version: '2.1.0',
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills,
  }
  const addresses =
    version === '0.3'
      ? { protocolVersion: '0.3.0', url: `${origin}/rpc`, preferredTransport: 'JSONRPC' }
      : { supportedInterfaces: [{ url: `${origin}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
  return { ...common, ...addresses, ...change }
}

export interface RemoteAgentServer extends VendorServer {
  readonly texts: readonly string[]
  /** Answered instead, when it returns true. */
  intercept: ((call: RecordedCall, answer: Answering) => boolean | Promise<boolean>) | undefined
  card: Fields
  finishAll(): void
  /** Bodies of JSON-RPC requests with this method. */
  requests(method: string): readonly Fields[]
}

/** A real agent on another system: the SDK's own server. */
export async function startRemoteAgent(version: Version): Promise<RemoteAgentServer> {
  const executor = new Executor()
  const handlers = (card: AgentCard) => {
    const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor)
    return version === '0.3' ? new LegacyJsonRpcTransportHandler(handler) : new JsonRpcTransportHandler(handler)
  }
  let rpc: ReturnType<typeof handlers> | undefined
  const server = await startVendor(async (call, answer) => {
    if (await agent.intercept?.(call, answer)) return
    const { pathname } = call.url
    const isCard = pathname === (version === '0.3' ? '/.well-known/agent.json' : '/.well-known/agent-card.json')
    if (isCard) return answer.json(200, agent.card)
    if (pathname !== '/rpc' || !rpc) return answer.json(404, { error: 'not found' })
    const answered = await rpc.handle(call.text, new ServerCallContext({ requestedVersion: version }))
    if (Symbol.asyncIterator in answered) throw new Error('nobody asked for a stream')
    answer.json(200, answered)
  })
  const agent: RemoteAgentServer = {
    ...server,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    card: cardOf(version, server.origin),
    intercept: undefined,
    texts: executor.texts,
    finishAll: () => executor.finishAll(),
    requests: (method) =>
      server.calls
        .map(({ text }) => (text === '' ? undefined : readJson(text)))
        .filter(isObject)
        .filter((body) => body['method'] === method),
  }
  rpc = handlers(AgentCard.fromJSON(cardOf('1.0', server.origin)))
  return agent
}
