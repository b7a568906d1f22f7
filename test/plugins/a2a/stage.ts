import { randomUUID } from 'node:crypto'
import { Role } from '@a2a-js/sdk'
import type { AgentCard, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk'
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client'
import type { Client } from '@a2a-js/sdk/client'
import type { Json } from '../../support/json.ts'
import type { TestHost } from '../../support/host.ts'

export const versions = ['1.0', '0.3'] as const
export type Version = (typeof versions)[number]

/** The official client, as it speaks one version with the service or with one agent. */
export async function connectSdk(
  host: TestHost,
  version: Version,
  agent?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init = {}) =>
    fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers } })
  const legacyCompat = { enabled: version === '0.3' }
  const transports = [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })]
  const resolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat })
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports, cardResolver: resolver }),
  )
  const base = agent === undefined ? host.url : `${host.url}/a2a/agents/${agent}/`
  if (version === '1.0') return factory.createFromUrl(base)
  const path = new URL('.well-known/agent-card.json', base.endsWith('/') ? base : `${base}/`)
  const { supportedInterfaces: _, ...card } = (await (await fetchImpl(path)).json()) as Json
  return factory.createFromAgentCard(card as AgentCard)
}

export function message(text: string, more: object = {}, configuration?: object): SendMessageRequest {
  return {
    tenant: '',
    metadata: undefined,
    configuration: configuration && {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: false,
      ...configuration,
    },
    message: {
      messageId: randomUUID(),
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...more,
    },
  }
}

export async function send(client: Client, request: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(request)
  if (!('status' in result)) throw new Error('a message instead of a task')
  return result
}
export function textOf({ artifacts }: Pick<Task, 'artifacts'>): string {
  return artifacts
    .flatMap(({ parts }) => parts)
    .map(({ content }) => (content?.$case === 'text' ? content.value : ''))
    .join('')
}
/** What a stream said: the states of the task, and its answer put together. */
export async function readStream(events: AsyncIterable<StreamResponse>) {
  const states: number[] = []
  const kinds: string[] = []
  let answer = ''
  let task: Task | undefined
  let isWhole = false
  for await (const { payload } of events) {
    if (!payload) continue
    kinds.push(payload.$case)
    if (payload.$case === 'task') {
      task = payload.value
      answer = textOf(task)
    }
    if (payload.$case === 'task' || payload.$case === 'statusUpdate') states.push(payload.value.status?.state ?? -1)
    if (payload.$case === 'artifactUpdate' && payload.value.artifact) {
      const text = textOf({ artifacts: [payload.value.artifact] })
      answer = payload.value.append ? answer + text : text
      isWhole = payload.value.lastChunk
    }
  }
  return { task, states, kinds, answer, isWhole }
}

/** One request of JSON-RPC as it is, with its answer. */
export async function rpc(
  host: TestHost,
  body: unknown,
  { path = '/a2a', headers = {} }: { readonly path?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<{ readonly status: number; readonly body: Json }> {
  const answer = await host.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: answer.status, body: await answer.json() }
}
