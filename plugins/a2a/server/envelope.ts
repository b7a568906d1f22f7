import * as v from 'valibot'
import { JsonObject } from 'svc/internal'
import { isObject, parse, Refusal } from 'svc/sdk'

export type RpcId = string | number | null
export interface RpcRequest {
  readonly id: RpcId
  readonly method: string
  readonly params: unknown
}
/** A request that is not one: the code and message of JSON-RPC. */
export class RpcFault extends Error {
  readonly code: number
  readonly id: RpcId
  constructor(code: number, message: string, id: RpcId = null) {
    super(message)
    this.code = code
    this.id = id
  }
}
export const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
export const METHOD_NOT_FOUND = -32_601
const INVALID_PARAMS = -32_602

const isId = (id: unknown): id is RpcId => id === null || typeof id === 'string' || Number.isInteger(id)

/** Throws `RpcFault` for what is no request of JSON-RPC 2.0. */
export function readEnvelope(value: unknown): RpcRequest {
  if (Array.isArray(value)) throw new RpcFault(INVALID_REQUEST, 'A2A has no batches: send one request')
  if (!isObject(value))
    throw new RpcFault(INVALID_REQUEST, 'A request is an object with jsonrpc, id, method and params')
  const { jsonrpc, id = null, method, params } = value
  if (!isId(id)) throw new RpcFault(INVALID_REQUEST, 'id: must be a string, a whole number or null')
  if (jsonrpc !== '2.0') throw new RpcFault(INVALID_REQUEST, 'jsonrpc: must be "2.0"', id)
  if (typeof method !== 'string') throw new RpcFault(INVALID_REQUEST, 'method: must be a string', id)
  return { id, method, params }
}

const text = v.optional(v.string())
const record = v.optional(JsonObject)
const number = v.optional(v.number())
const flag = v.optional(v.boolean())
const texts = v.optional(v.array(v.string()))
const File = v.looseObject({ bytes: text, uri: text, name: text, mimeType: text })
const Part = v.pipe(
  v.looseObject({
    kind: text,
    text,
    raw: text,
    url: text,
    file: v.optional(File),
    filename: text,
    mediaType: text,
    metadata: record,
  }),
  v.check(({ kind, text: said }) => kind !== 'text' || said !== undefined, 'a part of kind text has a text'),
  v.check(({ kind, file }) => kind !== 'file' || file !== undefined, 'a part of kind file has a file'),
)
const Message = v.looseObject({
  messageId: v.string(),
  role: v.union([v.string(), v.number()]),
  parts: v.array(Part),
  contextId: text,
  taskId: text,
  metadata: record,
  extensions: texts,
  referenceTaskIds: texts,
})
/** Protocol 0.3 has a list, of which the SDK takes the first one and prints the others to the console. */
const Schemes = v.pipe(
  v.array(v.string()),
  v.transform((schemes) => schemes.slice(0, 1)),
)
const Authentication = v.looseObject({ scheme: text, schemes: v.optional(Schemes), credentials: text })
const push = { id: text, url: v.string(), token: text, authentication: v.optional(Authentication) }
const Push = v.looseObject(push)
const Send = v.looseObject({
  message: Message,
  configuration: v.optional(
    v.looseObject({
      acceptedOutputModes: texts,
      historyLength: number,
      blocking: flag,
      returnImmediately: flag,
      pushNotificationConfig: v.optional(Push),
      taskPushNotificationConfig: v.optional(Push),
    }),
  ),
  metadata: record,
})
const OneTask = v.looseObject({ id: v.string(), historyLength: number, metadata: record })
const LegacyPush = v.looseObject({ id: v.string(), pushNotificationConfigId: text })
const OnePush = v.looseObject({ taskId: v.string(), id: v.string() })
const None = v.looseObject({})
const List = v.looseObject({
  contextId: text,
  status: v.optional(v.union([v.string(), v.number()])),
  pageSize: number,
  pageToken: text,
  historyLength: number,
  statusTimestampAfter: text,
  includeArtifacts: flag,
})

/** The methods of protocol 0.3. */
export const legacyMethods: Readonly<Record<string, v.GenericSchema>> = {
  'message/send': Send,
  'message/stream': Send,
  'tasks/get': OneTask,
  'tasks/cancel': OneTask,
  'tasks/resubscribe': OneTask,
  'tasks/pushNotificationConfig/set': v.looseObject({ taskId: v.string(), pushNotificationConfig: Push }),
  'tasks/pushNotificationConfig/get': LegacyPush,
  'tasks/pushNotificationConfig/list': LegacyPush,
  'tasks/pushNotificationConfig/delete': v.looseObject({ id: v.string(), pushNotificationConfigId: v.string() }),
  'agent/getAuthenticatedExtendedCard': None,
}
/** Those of 1.0. */
export const currentMethods: Readonly<Record<string, v.GenericSchema>> = {
  SendMessage: Send,
  SendStreamingMessage: Send,
  GetTask: OneTask,
  ListTasks: List,
  CancelTask: OneTask,
  SubscribeToTask: OneTask,
  CreateTaskPushNotificationConfig: v.looseObject({ ...push, taskId: v.string() }),
  GetTaskPushNotificationConfig: OnePush,
  ListTaskPushNotificationConfigs: v.looseObject({ taskId: v.string() }),
  DeleteTaskPushNotificationConfig: OnePush,
  GetExtendedAgentCard: None,
}

/** Parameters whose shape is that of the method, so that the SDK is given what it expects. Throws `RpcFault`. */
export function readParams({ id, params = {} }: RpcRequest, schema: v.GenericSchema): Record<string, unknown> {
  if (!isObject(params) || Array.isArray(params) || Object.hasOwn(params, ''))
    throw new RpcFault(INVALID_PARAMS, 'params: must be an object with names', id)
  try {
    return parse(schema, withCamelCase(params, 3), 'params') as Record<string, unknown>
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new RpcFault(INVALID_PARAMS, error.message, id)
  }
}

/** Fields in snake_case, which JSON of protocol buffers may have, get their usual names; `null` is as good as absent. */
function withCamelCase(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) return value.map((one) => withCamelCase(one, depth))
  if (!isObject(value) || depth < 0) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([name, inner]) => [camelCase(name), FREE.has(name) ? inner : withCamelCase(inner, depth - 1)]),
  )
}
/** Their content is that of the client. */
const FREE: ReadonlySet<string> = new Set(['metadata', 'data'])
function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
