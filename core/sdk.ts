/** Everything a plugin may import of the host. Plugins get this module as `svc/sdk`, the same one the host uses. */
export { Refusal, UpstreamFailure } from './errors/error.ts'
export type { ErrorCode, ErrorOptions, UpstreamOptions, UpstreamReason } from './errors/error.ts'
export { defineService, definePlugin } from './host/define.ts'
export type {
  AnyPlugin,
  ConfigSchema,
  Migration,
  OfflineParts,
  OfflineWork,
  PluginDefinition,
  Services,
  ServiceToken,
  Tokens,
} from './host/define.ts'
export type { PluginContext } from './host/context.ts'
export { Configuration } from './config/configuration.ts'
export type { Applied } from './config/configuration.ts'
export { AuthenticationFailed, Daemon, DaemonListening, UnrecordedChange } from './host/daemon.ts'
export { Guests } from './host/guests.ts'
export type { GuestEnd, GuestRun } from './host/guests.ts'
export { Guards } from './host/guards.ts'
export { Safekeeping } from './host/safekeeping.ts'
export type { SwapPlan } from './host/safekeeping.ts'
export type { RawAnswer } from './host/guards.ts'
export type { Build, DaemonConfig, Health, PluginStatus } from './host/daemon.ts'
export { Logs } from './host/logs.ts'
export type { NumberedLine } from './log/feed.ts'
export { confine, splitName } from './files/confine.ts'
export { inFolder, openConfined, removeConfined, removeFolder, replaceConfined } from './files/late.ts'
export { mediaTypeOf } from './files/media-type.ts'
export { gate, notify, transform } from './hooks/hook.ts'
export type { Hook, HookKind, Hooks, Listener } from './hooks/hook.ts'
export { defineRoute, defineSocket, rawBody, reply } from './http/route.ts'
export type {
  AnyRoute,
  AnySocketRoute,
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
export type { AcceptedCredentials, CredentialSource, PluginCredentials } from './auth/credentials.ts'
export { checkAuthority } from './auth/authority.ts'
export type { Effect } from './auth/authority.ts'
export { actorOf, nameOf } from './auth/principal.ts'
export type { Holder, Principal } from './auth/principal.ts'
export { createLimiter } from './limit/gcra.ts'
export type { Limiter } from './limit/gcra.ts'
export type { Jobs } from './jobs/job.ts'
export type { Counter, Gauge, Histogram, Labels, Metrics } from './metrics/metric.ts'
export { createMask } from './log/mask.ts'
export { namesSecret } from './log/secret-name.ts'
export { classify } from './net/address.ts'
export { allowsHost } from './net/host-patterns.ts'
export type { Fetch, OutboundRequest, OutboundResponse } from './net/fetch.ts'
export { EventStreamReader } from './net/event-stream.ts'
export type { StreamedEvent } from './net/event-stream.ts'
export { readStreamed } from './net/streamed-answer.ts'
export type { StreamDecoder } from './net/streamed-answer.ts'
export { StreamedText } from './net/streamed-text.ts'
export type { TextEvent } from './net/streamed-text.ts'
export { readFailedBody, readFailedJson, readRetryAfter, shortened } from './net/failed-answer.ts'
export type { Admission, Child, Exit, Isolation, Spawn, SpawnRequest } from './process/child.ts'
export { commandLine, commandName } from './process/command-name.ts'
export { readVariable } from './process/inherited.ts'
export type { Program } from './process/program.ts'
export { parseJson as readJsonBody } from './http/json-text.ts'
export { orAbsent } from './schema/absent.ts'
export { line } from './schema/line.ts'
export { readJson, readOwnJson, TooDeep } from './schema/nesting.ts'
export { parseToml } from './config/toml-text.ts'
export { isObject, omitUndefined } from './schema/object.ts'
export { parse } from './schema/parse.ts'
export { matchesWildcard } from './schema/wildcard.ts'
export { fileOnly, settable } from './config/file-only.ts'
export { findNearest, listNearest, suggest } from './schema/nearest.ts'
export { MASK, secret } from './schema/secret.ts'
export { defineConfig } from './config/define.ts'
export { screenText } from './screening/lazy.ts'
export type { Screening } from './screening/lazy.ts'
export { manifestSigning } from './signing/lazy.ts'
export { currentActor, describeActor, noteRecorded, runAs } from './scope/actor.ts'
export type { Actor } from './scope/actor.ts'
export { enforced, onEnforced, rehearse } from './scope/enforcement.ts'
export { KeyedQueue, SerialQueue } from './scope/queue.ts'
export type { Dispose, Entry } from './scope/scope.ts'
export type { Changes, PluginDatabase, Statement, Value } from './storage/database.ts'
export { SecretBytes } from './storage/secret-bytes.ts'
export type { Vault } from './storage/vault.ts'
export { defineTool } from './tools/tool.ts'
export type {
  AnyTool,
  CallAssessment,
  Capability,
  Tool,
  ToolCallContext,
  ToolDescription,
  ToolResult,
  Tools,
} from './tools/tool.ts'
