/**
 * What only the plugins of this repository import of the host, as `svc/internal`. It changes with any version and
 * without notice:
 * a plugin outside the repository imports `svc/sdk`.
 */
export { checkAuthority } from './auth/authority.ts'
export { rowProofs, verifyEd25519 } from './auth/late.ts'
export type { RowProofs } from './auth/row-proof.ts'
export { CodeHasher, makeCode } from './auth/short-code.ts'
export { actorOf } from './auth/principal.ts'
export { StartRefused } from './errors/start-refused.ts'
export { AcceptedPermissions } from './host/accepted-permissions.ts'
export { Broadcast } from './host/broadcast-service.ts'
export type { BroadcastListener } from './storage/broadcast.ts'
export { followChanges } from './storage/changes-elsewhere.ts'
export type { RowsInMemory, TellChange } from './storage/changes-elsewhere.ts'
export { KeptRows } from './storage/kept-rows.ts'
export type { ForeignDatabase } from './storage/foreign-database.ts'
export { openForeignDatabase } from './storage/late.ts'
export { isNotHeld, ServerAway } from './storage/failure.ts'
export { untilAnswered } from './storage/until-answered.ts'
export { flagColumn, jsonColumn, nullableColumn, numberColumn } from './storage/columns.ts'
export { RowReader } from './storage/row-reader.ts'
export { DatabaseServer } from './host/database-server.ts'
export type { ServerPool } from './storage/database-server.ts'
export { unsupportedParts } from './host/isolation/crossing.ts'
export { newPermissions, permissionsOf } from './host/permissions.ts'
export { pluginsLoaded } from './host/plugins-loaded.ts'
export { readableByLoader, readDefinition, servePlugin } from './host/read-definition.ts'
export { Configuration } from './host/configuration-service.ts'
export type { AppliedChange } from './host/configuration-service.ts'
export { parseToml, renderToml, TomlError } from './config/toml-text.ts'
export { checkFileName, confine, entryPath, splitName } from './files/confine.ts'
export { checkDistinctNames } from './files/distinct-names.ts'
export { hashOfFiles } from './files/hash-of-files.ts'
export { HomeRecord } from './files/home-record.ts'
export type { ArchivedFile, ArchiveLimits } from './files/read-archive.ts'
export {
  inFolder,
  openConfined,
  openSharedFolders,
  readArchive,
  removeConfined,
  removeFolder,
  replaceConfined,
  syncFolder,
} from './files/late.ts'
export type { SharedFolder, SharedFolders, SharedFolderStore } from './files/shared-folders.ts'
export { mediaTypeOf } from './files/media-type.ts'
export {
  AuthenticationFailed,
  Daemon,
  DaemonListening,
  DaemonStopping,
  DatabaseCopying,
  ListeningStarting,
  PluginChanged,
  UnrecordedChange,
} from './host/daemon.ts'
export type { DaemonConfig, Health, PluginChange, PluginStatus } from './host/daemon.ts'
export { bundledHands, bundledSkills, bundledTemplates, typesConfig } from './process/installation.ts'
export type { Build } from './process/installation.ts'
export type { OfflineDeps, OfflineWork } from './host/define.ts'
export { fence } from './tools/fence.ts'
export { Logs } from './host/logs.ts'
export { DatabaseSnapshots } from './host/database-snapshots.ts'
export type { SwapPlan } from './host/database-snapshots.ts'
export { PluginDataService } from './host/plugin-data-service.ts'
export type { PluginData } from './host/plugin-data-service.ts'
export { framedFile, sandboxedDocument } from './http/sandboxed-document.ts'
export { matchesEtag } from './http/etag.ts'
export type { OwnPort, RawAnswer } from './http/own-port.ts'
export { parseJson as readJsonBody } from './http/json-text.ts'
export { foldAddress, limiterKey } from './limit/client.ts'
export { createLimiter } from './limit/gcra.ts'
export type { Limiter } from './limit/gcra.ts'
export type { NumberedLine } from './log/feed.ts'
export { createMask } from './log/mask.ts'
export { namesSecret } from './log/secret-name.ts'
export { escapeControls } from './log/text.ts'
export { classify } from './net/address.ts'
export { testOutbound } from './net/lazy.ts'
export { nextHop, readHops } from './net/hops.ts'
export type { HopLimit } from './net/hops.ts'
export type { OwnAddress } from './net/own-addresses.ts'
export { allowsHost, hostPatternProblem } from './net/host-patterns.ts'
export { programProxy } from './process/environment.ts'
export { commandName, launcher } from './process/command-name.ts'
export { holdGrowth } from './process/hold-growth.ts'
export { forkProcess, processFile, readProcess } from './process/fork.ts'
export type { OwnProcess } from './process/fork.ts'
export { isOwnVariable, readSharedVariable, readVariable } from './process/inherited.ts'
export { BEATS, HeartbeatWatch, homeId } from './process/liveness.ts'
export type { Heartbeat } from './process/liveness.ts'
export { canonicalJson } from './schema/object.ts'
export { schemaFault } from './schema/late.ts'
export { lineOfKey } from './schema/line-of-key.ts'
export { HiddenProperty } from './schema/hidden-property.ts'
export { newId } from './schema/new-id.ts'
export { stableId } from './schema/stable-id.ts'
export { orAbsent } from './schema/absent.ts'
export { JsonObject } from './schema/json-object.ts'
export { findNearest, listNearest, suggest } from './schema/nearest.ts'
export { toUnknownKey, unknownKeys } from './schema/unknown-keys.ts'
export type { UnknownKey } from './schema/unknown-keys.ts'
export { parseAssignments } from './schema/assignments.ts'
export { checkDepth, readOwnJson, NestingError } from './schema/nesting.ts'
export { MASK } from './schema/secret.ts'
export { matchesWildcard } from './schema/wildcard.ts'
export { currentActor, describeActor, noteRecorded, runAs } from './scope/actor.ts'
export { RepeatedWork } from './scope/repeated-work.ts'
export type { Actor } from './scope/actor.ts'
export { messageOf } from './errors/message.ts'
export { monotonicClock, orAborted, sleep, toIso, wallClock } from './scope/clock.ts'
export type { Clock } from './scope/clock.ts'
export { enforced, onEnforced, rehearse } from './scope/enforcement.ts'
export type { Entry } from './scope/scope.ts'
export { SecretBytes } from './storage/secret-bytes.ts'
