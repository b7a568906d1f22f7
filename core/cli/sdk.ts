/**
 * Everything a command of a plugin may import of the command line. Plugins get this module as `svc/cli`, the same one
 * the host uses.
 */
export { defineCli, failed, passed, warned } from './plugin-cli.ts'
export type { Check, CheckContext, CheckResult, PluginCli, StatusLines } from './plugin-cli.ts'
export { clientArgs, defineCommand, homeArgs, repeatedFlag } from './command.ts'
export type { Command, CommandEntry, CommandTree } from './command.ts'
export { confirm } from './confirm.ts'
export { callDaemon, connect, explainError, hasDaemon } from './connect.ts'
export type { ClientArgs, Connection } from './connect.ts'
export { exits, Failure } from './failure.ts'
export { renderFailure, toFailure } from './failure-output.ts'
export { commandFor, locateHome } from './home-location.ts'
export type { HomeLocation } from './home-location.ts'
export { databasePath } from './database-path.ts'
export {
  copyDatabase,
  editFile,
  joinDatabase,
  loadSettings,
  loadTerminal,
  openBrowser,
  openStoppedHome,
  rehearseVersion,
  workOffline,
  writeOffline,
} from './lazy.ts'
export type { CopiedDatabase, CopyDatabaseRequest } from './copy-database.ts'
export type { Joined, JoinRequest } from './join-database.ts'
export type { Rehearsal, RehearsalOptions } from './rehearse-version.ts'
export type { Work } from './stopped-database.ts'
export type { StoppedHome } from './stopped-home.ts'
export { note, print, printJson, renderDuration, renderFacts, renderTime } from './output.ts'
export { renderTable } from './table.ts'
export { readSecret } from './secret-input.ts'
export { paint, PlainView } from './terminal/view.ts'
export type { View } from './terminal/view.ts'
export type { Screen } from './terminal/screen.ts'
export { terminalMode } from './terminal/mode.ts'
export { escapeControls, shorten } from '../log/text.ts'
export { DaemonRefusal, DaemonUnreachable } from '../net/daemon-client.ts'
export type { DaemonCall, DaemonClient, ServerEvent } from '../net/daemon-client.ts'
export { typesConfig } from '../process/installation.ts'
export { runNodeTests } from '../process/node-tests.ts'
export { commandLine, commandName, launcher } from '../process/command-name.ts'
export { findNearest, suggest } from '../schema/nearest.ts'
export { readJson } from '../schema/nesting.ts'
export { isObject, omitUndefined } from '../schema/object.ts'
export type { Config } from '../config/schema.ts'
