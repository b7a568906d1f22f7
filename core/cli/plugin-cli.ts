import type { Config } from '../config/schema.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import type { CommandTree } from './command.ts'

/** What a check of `svc doctor` found. */
export interface CheckResult {
  readonly state: 'ok' | 'warn' | 'fail'
  readonly found: string
  /** What to do about it. */
  readonly advice?: string
}
export const passed = (found: string): CheckResult => ({ state: 'ok', found })
export const warned = (found: string, advice: string): CheckResult => ({ state: 'warn', found, advice })
export const failed = (found: string, advice: string): CheckResult => ({ state: 'fail', found, advice })

export interface CheckContext {
  readonly config: Config
  /** The environment of the command. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Calls the daemon of the home; `undefined` when it does not run or does not answer. */
  readonly daemon: DaemonClient | undefined
}
/** A check of `svc doctor`; what it throws is shown as a warning. */
export type Check = (context: CheckContext) => Promise<CheckResult>

type StatusLine = readonly [name: string, value: string]
/** Names and values for `svc status`, from the daemon's answer to `GET /api/status`, or from what it is asked besides. */
export type StatusLines = (
  status: Readonly<Record<string, unknown>>,
  daemon: DaemonClient,
) => readonly StatusLine[] | Promise<readonly StatusLine[]>

/** What a plugin adds to the command line. */
export interface PluginCli {
  /** Name of the plugin, as in its `definePlugin`. */
  readonly name: string
  /** Commands by name, at most two words deep. A name that is taken is refused. */
  readonly commands?: CommandTree
  /** Checks of `svc doctor`, by the name they are listed under. */
  readonly checks?: Readonly<Record<string, { readonly load: () => Promise<{ readonly default: Check }> }>>
  /** What the plugin adds to the text of `svc status`. */
  readonly status?: { readonly load: () => Promise<{ readonly default: StatusLines }> }
}

/**
 * Defines what a plugin adds to the command line: the default export of `cli.ts` (or `cli.js`) in the folder of the
 * plugin. `svc --help` and completion evaluate this file and not the plugin, so it imports nothing but `svc/cli` and
 * loads the rest lazily.
 */
export function defineCli(cli: PluginCli): PluginCli {
  return cli
}
