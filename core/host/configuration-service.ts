import { defineService } from './define.ts'
import type { ConfigChange } from '../config/live.ts'

/** The result of a change of the configuration. Keys are dotted. */
export interface AppliedChange extends ConfigChange {
  /** Plugins that run with their new section. */
  readonly reloaded: readonly string[]
  /** Plugins that reload after the caller, which runs in them, has been answered. */
  readonly later: readonly string[]
  /** Plugins that keep their old section, and why. */
  readonly failed: readonly { readonly plugin: string; readonly reason: string }[]
  readonly warnings: readonly string[]
}

/** The configuration of the running daemon, provided by the core. */
export interface Configuration {
  /** The whole configuration, with `***` for secrets. */
  read(): Readonly<Record<string, unknown>>
  /** The present value of a key, or the given one, with `***` for secrets. */
  shown(key: string, value?: unknown): unknown
  /** Dotted key to the file and line, variable or flag its value came from; a key that is missing has its default. */
  sources(): ReadonlyMap<string, string>
  /**
   * A digest of the value of each key, secrets too, made with a secret of the caller: see `configDigests`. Those of two
   * daemons are compared.
   */
  digests(secret: Uint8Array): Promise<ReadonlyMap<string, string>>
  /** Whether daemons that share a database differ in this key by its nature, such as in `log_level`. */
  isOfMachine(key: string): Promise<boolean>
  /** Keys whose change waits for a restart. */
  restart(): readonly string[]
  /** JSON Schema (draft-07) of `config.toml` with the sections of the loaded plugins. */
  schema(): Promise<Record<string, unknown>>
  /**
   * Throws what `set` would throw, and changes nothing. `invalid_request` names the key and what was expected;
   * `forbidden` is for keys that only the owner of the machine may change, in the file.
   */
  check(key: string, value: unknown): Promise<void>
  /**
   * Writes one key into `<home>/config.toml` and reloads the configuration. Throws like `check`, and `conflict` if the
   * file is invalid.
   */
  set(key: string, value: unknown): Promise<AppliedChange>
  /** Like `set`, for what was set at another daemon on the database: who listens with `onSet` is not told. */
  adopt(key: string, value: unknown): Promise<AppliedChange>
  /**
   * Called with each key that `set` has written, before `set` settles, one at a time; what it throws, `set` throws. Until
   * it is disposed.
   */
  onSet(listener: (key: string, value: unknown) => Promise<void>): Disposable
  /** Reads all sources again. Throws `invalid_request` with every problem, and changes nothing then. */
  reload(): Promise<AppliedChange>
}
export const Configuration = defineService<Configuration>()('configuration')
