import { defineService } from './define.ts'
import type { ConfigChange } from '../config/live.ts'

/** What became of a change of the configuration. Keys are dotted. */
export interface AppliedChange extends ConfigChange {
  /** Plugins that run with their new section by now. */
  readonly reloaded: readonly string[]
  /** Plugins that take theirs when the caller, who depends on them, has been answered. */
  readonly later: readonly string[]
  /** Plugins that go on with their old section, and why. */
  readonly failed: readonly { readonly plugin: string; readonly reason: string }[]
  readonly warnings: readonly string[]
}

/** The configuration of the running daemon, provided by the core. */
export interface Configuration {
  /** Everything, with `***` for secrets. */
  read(): Readonly<Record<string, unknown>>
  /** The value of a key, or one it might get, as it may be shown: with `***` for secrets. */
  shown(key: string, value?: unknown): unknown
  /** Dotted key to the file and line, variable or flag its value came from; a key that is missing has its default. */
  sources(): ReadonlyMap<string, string>
  /** Keys whose change waits for a restart. */
  restart(): readonly string[]
  /** JSON Schema (draft-07) of `config.toml` with the sections of the loaded plugins. */
  schema(): Promise<Record<string, unknown>>
  /**
   * Throws what `set` would throw for this key and value, and changes nothing. `invalid_request` names the key and
   * what was expected;
   * `forbidden` is for keys that only the owner of the machine may change, in the file.
   */
  check(key: string, value: unknown): Promise<void>
  /**
   * Writes one key into `<home>/config.toml` and reads everything again. Throws as `check` does, and `conflict` when
   * the file is broken.
   */
  set(key: string, value: unknown): Promise<AppliedChange>
  /** Reads every source again. `invalid_request` with everything that is wrong, and nothing is changed then. */
  reload(): Promise<AppliedChange>
}
export const Configuration = defineService<Configuration>()('configuration')
