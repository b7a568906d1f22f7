/**
 * What a plugin imports of the host, as `svc/sdk`: the same module the host uses. Every name here is public and follows
 * the version of the interface (`API_VERSION`). What only the plugins of this repository need is in `svc/internal`.
 */

// A plugin and its parts
export { API_VERSION } from './host/api-version.ts'
export { definePlugin, defineService } from './host/define.ts'
export type {
  AnyPlugin,
  ConfigSchema,
  PluginConfig,
  Sections,
  FilePage,
  Migration,
  PageAction,
  PageDeclaration,
  PageEntry,
  PageTable,
  PluginDefinition,
  Services,
  ServiceToken,
  TablePage,
  Tokens,
} from './host/define.ts'
export type { RemoteEnd, RemoteMethods, RemoteService, RemoteServiceDeps } from './host/remote-service.ts'
export type { PluginUses } from './host/plugin-uses.ts'
export type { PluginContext } from './host/context.ts'
export type { Dispose } from './scope/scope.ts'

// Configuration
export { defineConfig } from './config/define.ts'
export * as fields from './config/fields.ts'
export { fileOnly, settable } from './config/file-only.ts'
export { secret } from './schema/secret.ts'

// Errors
export { defineError } from './errors/codes.ts'
export type { ErrorDefinition } from './errors/codes.ts'
export { Refusal, UpstreamFailure } from './errors/error.ts'
export type { ErrorCode, ErrorOptions, UpstreamOptions, UpstreamReason } from './errors/error.ts'

// Hooks
export { gate, notify, transform } from './hooks/hook.ts'
export type { Hook, HookKind, Hooks, Listener } from './hooks/hook.ts'

// Routes, sockets and who calls them
export { defineRoute, defineSocket, rawBody, reply } from './http/route.ts'
export type {
  AnyRoute,
  AnySocketRoute,
  ByteStream,
  EventStream,
  Method,
  Problem,
  RawBody,
  Reply,
  RequestFacts,
  Route,
  RouteInput,
  Routes,
  ServerSentEvent,
  Socket,
  SocketInput,
  SocketRoute,
} from './http/route.ts'
export type { Effect } from './auth/authority.ts'
export type { AcceptedCredentials, CredentialSource, PluginCredentials } from './auth/credentials.ts'
export { nameOf } from './auth/principal.ts'
export type { Holder, Principal } from './auth/principal.ts'

// Tools
export { describeInput } from './tools/input-schema.ts'
export { defineTool, idempotencyKey } from './tools/tool.ts'
export type {
  AnyTool,
  CallAssessment,
  Recovery,
  Tool,
  ToolCallContext,
  ToolDescription,
  ToolAnswer,
  ToolClient,
  ToolContent,
  ToolProgress,
  ToolResult,
  Tools,
} from './tools/tool.ts'

// Storage
export type { Changes, PluginDatabase, Statement, Value } from './storage/database.ts'
export { sqlPart } from './storage/text.ts'
export type { SqlPart } from './storage/text.ts'
export type { Logger } from './log/logger.ts'
export type { KeyValueStorage, StoredValue } from './storage/key-value.ts'
export type { Vault } from './storage/vault.ts'

// Scheduled work and metrics
export type { Jobs } from './jobs/job.ts'
export type { Counter, Gauge, Histogram, Labels, Metrics } from './metrics/metric.ts'

// Requests to other systems and their answers
export { EventStreamReader } from './net/event-stream.ts'
export type { StreamedEvent } from './net/event-stream.ts'
export { readFailedBody, readFailedJson, readRetryAfter, shortened } from './net/failed-answer.ts'
export type { Fetch, OutboundRequest, OutboundResponse } from './net/fetch.ts'
export type {
  AcceptedConnection,
  Connect,
  Connection,
  ConnectOptions,
  Listen,
  ListenOptions,
  OpenWebSocket,
  PluginNetwork,
  PortListener,
  StartTls,
  TlsOptions,
  WebSocketClose,
  WebSocketConnection,
  WebSocketEvents,
  WebSocketOptions,
} from './net/connection.ts'

// Other programs
export type { Admission, Child, ConnectionFailure, Exit, Isolation, Spawn, SpawnRequest } from './process/child.ts'
export { commandLine } from './process/command-name.ts'
export type { Program } from './process/program.ts'

// Values from outside, and small tools
export { line } from './schema/line.ts'
export { readJson } from './schema/nesting.ts'
export { isObject, omitUndefined } from './schema/object.ts'
export { parse } from './schema/parse.ts'
export { KeyedQueue, SerialQueue } from './scope/queue.ts'
