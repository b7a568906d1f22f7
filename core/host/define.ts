import type * as v from 'valibot'
import type { Logger } from '../log/logger.ts'
import type { PluginDatabase } from '../storage/database.ts'
import type { Hook } from '../hooks/hook.ts'
import type { PluginContext } from './context.ts'
import type { DatabaseSnapshots } from './database-snapshots.ts'

/** Compared by id, never by identity: a reloaded plugin holds its own copy of every token. */
export interface ServiceToken<T, Id extends string = string> {
  /** Unique in the daemon; what a reloaded copy is recognised by. */
  readonly id: Id
  readonly '~type'?: T
}
/** Tokens of services by the name a plugin uses for them. */
export type Tokens = Readonly<Record<string, ServiceToken<unknown>>>
/** The services behind tokens, under the same names. */
export type Services<T extends Tokens> = { readonly [K in keyof T]: T[K] extends ServiceToken<infer S> ? S : never }
/** The schema of a section of the configuration: a valibot schema whose output is an object. */
export type ConfigSchema = v.GenericSchema<unknown, Record<string, unknown>>
/** Schemas of keys at the top of the configuration file, by key. */
export type Sections = Readonly<Record<string, v.GenericSchema>>
/** What a plugin gets as its configuration: its own section, and the sections at the top of the file that it owns. */
export type PluginConfig<C extends ConfigSchema, S extends Sections> = v.InferOutput<C> & {
  readonly [K in keyof S]: v.InferOutput<S[K]>
}

/** `id` is unique in its plugin and never changes; the SQL runs on SQLite and PostgreSQL and is additive. */
export interface Migration {
  /** Unique in its plugin, such as `001-tables`; never changes. */
  readonly id: string
  /** SQL in the SQLite dialect, several statements allowed. Never edited once released. */
  readonly sql: string
}

/**
 * A page of a plugin. It has the strict policy of every answer: no inline script or style, nothing of another origin.
 */
export interface PageDeclaration {
  /** The part of its address after `/pages/<plugin>/`, kebab-case. */
  readonly path: string
  /** As the page lists it, one line. */
  readonly title: string
  /** The HTML file, relative to the folder of the plugin. Anybody may read it without a key, so it holds no data. */
  readonly file: string
  /**
   * Scripts, styles and images the page loads, relative to the folder of `file`. Nothing else of the folder is served.
   */
  readonly assets?: readonly string[]
}

/** What a plugin gets that works for the command line without being set up. */
export interface OfflineDeps {
  readonly databaseSnapshots: DatabaseSnapshots
  /** For reading; absent when there is no database that can be opened. */
  readonly db: PluginDatabase | undefined
  /** A secret of the plugin; `undefined` when there is none. Rejects when it cannot be opened. */
  readonly secret: (name: string) => Promise<string | undefined>
  /** The configuration with `***` for secrets. */
  readonly config: Readonly<Record<string, unknown>>
  readonly log: Logger
}
/** Work for a command. What it answers is for its command alone, which parses it. */
export type OfflineWork = (
  deps: OfflineDeps,
  options: Readonly<Record<string, string | boolean | undefined>>,
) => Promise<unknown>

/** What a plugin is: its name, what it needs and provides, and how it is set up. */
export interface PluginDefinition<
  C extends ConfigSchema,
  R extends Tokens,
  O extends Tokens,
  P extends Tokens,
  S extends Sections = {},
> {
  /** kebab-case; also the folder, the config section `[plugins.<name>]`, the table prefix and the log tag. */
  readonly name: string
  /** The version of the plugin, as npm writes versions. It is for people: the daemon does not compare it. */
  readonly version: string
  /**
   * The versions of the plugin interface it works with, as npm writes ranges: `1`, `^1.2.0`. Another one refuses it
   * when it loads.
   * `API_VERSION` is what this daemon has.
   */
  readonly apiVersion?: string
  /**
   * Schema of the plugin's section of the configuration; it must accept `{}` or the plugin needs configuring first.
   * `fileOnly` and
   * `settable` say of keys whether the API may set them; without either the file alone does.
   */
  readonly config: C
  /**
   * Schemas of the keys at the top of the file that this plugin owns, such as `{ limits: Limits }`; they have to
   * accept a file without the
   * key. `ctx.config` has their values beside those of `config`. A key has one owner: who else needs its value asks
   * the owner.
   */
  readonly sections?: S
  /** Services that must be there for the whole life of this plugin. The host orders by them and refuses cycles. */
  readonly requires?: R
  /** Services that may come and go. Ask with `ctx.optional` each time. */
  readonly optional?: O
  /** The services that `setup` returns, by the name it returns them under. */
  readonly provides?: P
  /**
   * `operator`: its requests go to addresses of the configuration, which may be private or on this machine, never a
   * metadata service.
   * Absent: to public addresses and those of `[outbound] allow`.
   */
  readonly outbound?: 'operator'
  /**
   * The hooks this plugin calls, for others to listen to. Who listens to one of it that is not among them is told so.
   */
  readonly hooks?: readonly Hook<unknown>[]
  /** Steps of the plugin's tables. The missing ones run in this order before `setup`. */
  readonly migrations?: readonly Migration[]
  /**
   * Files in the home that belong to the database, such as a proof of its contents, named `<plugin>.<extension>`. They
   * are copied before the database is, and restored with it. One without a database refuses the start.
   */
  readonly databaseSidecars?: readonly string[]
  /** Pages that the web page lists. Their files are read when somebody opens them. */
  readonly pages?: readonly PageDeclaration[]
  /** By name: what it can do while no daemon runs, or beside one, with no other plugin. */
  readonly offline?: Readonly<Record<string, OfflineWork>>
  /** Registers everything and returns what the plugin provides. A throw leaves nothing behind. */
  setup(ctx: PluginContext<PluginConfig<C, S>, R, O>): Promise<Services<P>> | Services<P>
}
/** A plugin whatever its configuration and services are. */
export type AnyPlugin = PluginDefinition<ConfigSchema, Tokens, Tokens, Tokens, Sections>

/**
 * A token by which plugins provide and require a service: `defineService<Weather>()('weather')`. The id is unique in
 * the daemon.
 */
export function defineService<T>() {
  return <Id extends string>(id: Id): ServiceToken<T, Id> => ({ id })
}
/** The definition as it is, checked by the compiler; a plugin exports the result as default. */
export function definePlugin<
  C extends ConfigSchema,
  R extends Tokens = {},
  O extends Tokens = {},
  P extends Tokens = {},
  S extends Sections = {},
>(definition: PluginDefinition<C, R, O, P, S>): PluginDefinition<C, R, O, P, S> {
  return definition
}
