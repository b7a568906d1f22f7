import type * as v from 'valibot'
import type { Logger } from '../log/logger.ts'
import type { PluginDatabase } from '../storage/database.ts'
import type { Hook } from '../hooks/hook.ts'
import type { PluginContext } from './context.ts'
import type { Fetch } from '../net/fetch.ts'
import type { DatabaseSnapshots } from './database-snapshots.ts'
import type { PluginUses } from './plugin-uses.ts'

/** Tokens are compared by id, never by identity: a reloaded plugin holds its own copies. */
export interface ServiceToken<T, Id extends string = string> {
  /** Unique in the daemon. Identifies the token across reloads. */
  readonly id: Id
  /** Loads its `RemoteService`. Absent: it does not cross to plugins in processes of their own. */
  readonly remote?: () => Promise<unknown>
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
/** The configuration of a plugin: its own section, and the sections at the top of the file that it owns. */
export type PluginConfig<C extends ConfigSchema, S extends Sections> = v.InferOutput<C> & {
  readonly [K in keyof S]: v.InferOutput<S[K]>
}

/** `id` is unique in its plugin and never changes; the SQL runs on SQLite and PostgreSQL and is additive. */
export interface Migration {
  /** Unique in its plugin, such as `001-tables`; never changes. */
  readonly id: string
  /** SQL in the SQLite dialect, several statements allowed. Never edited once released. */
  readonly sql: string
  /** What PostgreSQL runs instead where the engines have nothing in common, such as an index of words. As it is. */
  readonly postgresql?: string
}

/** A page of a plugin: of an HTML file, or of a table that svc draws. */
export type PageDeclaration = FilePage | TablePage

/** Where a page is, and under what name. */
export interface PageEntry {
  /** The part of its URL after `/pages/<plugin>/`, in kebab-case. */
  readonly path: string
  /** Title in the list of pages, one line. */
  readonly title: string
  /** The heading it stands under in that list; without one it stands under the last. */
  readonly group?: string
}

/**
 * A page of a plugin with a file of its own. The strict content security policy applies: no inline script or style,
 * nothing from another origin.
 */
export interface FilePage extends PageEntry {
  /** The HTML file, relative to the folder of the plugin. Anybody may read it without a key, so it holds no data. */
  readonly file: string
  /** Where the list of pages leads, if a route of the plugin answers with the page, such as `/board`. */
  readonly url?: string
  /**
   * Scripts, styles and images of the page, relative to the folder of `file`. No other file of the folder is served.
   */
  readonly assets?: readonly string[]
}

/** A page without HTML: the rows that a route answers, and buttons for other routes. All are routes of the plugin. */
export interface TablePage extends PageEntry {
  /** What it shows. */
  readonly table: PageTable
  /** What can be done there. */
  readonly actions?: readonly PageAction[]
}

/** The answer of a GET route as a table. */
export interface PageTable {
  /** Path of the route, such as `/api/notes`. */
  readonly route: string
  /** Field of the answer that has the rows; without it the answer is a list. */
  readonly rows?: string
  /** What is shown of each row; the first column names it. */
  readonly columns: readonly { readonly field: string; readonly title: string }[]
  /** What stands there without rows, and should say what to do. */
  readonly empty?: string
}

/** A button that calls a route, with a form before it if it has `fields`. */
export interface PageAction {
  /** What the button says. */
  readonly title: string
  /** Method of the route. */
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path of the route. `:id` in it is the field `id` of a row, and every row has the button then. */
  readonly route: string
  /** Texts that the form asks for, by their names in the body. */
  readonly fields?: readonly { readonly name: string; readonly title: string; readonly required?: boolean }[]
  /** Asks before it is done. */
  readonly dangerous?: boolean
}

/** Dependencies of offline work, which runs without setting up the plugin. */
export interface OfflineDeps {
  readonly databaseSnapshots: DatabaseSnapshots
  /** Read-only, unless the command opened it to write; absent if there is no database that can be opened. */
  readonly db: PluginDatabase | undefined
  /** A secret of the plugin; `undefined` if there is none. Rejects if it cannot be decrypted. */
  readonly secret: (name: string) => Promise<string | undefined>
  /** The configuration with `***` for secrets. */
  readonly config: Readonly<Record<string, unknown>>
  /** The section of the plugin as it was given, with its secrets; not validated. */
  readonly section: unknown
  /** Requests to addresses of the configuration; absent for work that sends none. */
  readonly fetch: Fetch | undefined
  readonly log: Logger
}
/** Work for a command of the plugin, which parses the result. */
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
  /** The version of the plugin in npm syntax. It is informational: the daemon does not compare it. */
  readonly version: string
  /**
   * The supported versions of the plugin interface as an npm range: `1`, `^1.2.0`. The plugin does not load if
   * `API_VERSION` of the daemon is outside it.
   */
  readonly apiVersion?: string
  /**
   * Schema of the configuration section of the plugin. It must accept `{}`, or the plugin must be configured before it
   * loads. `fileOnly` and `settable` say whether the API may set a key; by default only the file can.
   */
  readonly config: C
  /**
   * Schemas of the top-level keys that this plugin owns, such as `{ limits: Limits }`. They must accept a file without
   * the key. `ctx.config` has their values beside those of `config`. A key has one owner: other plugins ask the owner
   * for its value.
   */
  readonly sections?: S
  /** Services that must exist as long as this plugin runs. The host loads plugins in this order and refuses cycles. */
  readonly requires?: R
  /** Services that may appear and disappear. Call `ctx.optional` each time. */
  readonly optional?: O
  /** The services that `setup` returns, by the name it returns them under. */
  readonly provides?: P
  /**
   * `operator`: its requests go to addresses of the configuration, which may be private or on this machine, but never
   * to a metadata service. `both`: those of `ctx.operator` do, all others go to public addresses. Absent: only to
   * public addresses and those in `[outbound] allow`.
   */
  readonly outbound?: 'operator' | 'both'
  /**
   * What it uses of the daemon and of the world. With it, everything else is refused. A plugin in `<home>/plugins`
   * without it is not restricted; an installed one without it gets nothing.
   */
  readonly uses?: PluginUses
  /**
   * `overlap`: after a reload, calls that run go on in the old code, at most `plugins.retire_ms`, while the new code
   * serves. `exclusive`: the new code is set up when they have ended or were aborted after `plugins.drain_ms`; for a
   * plugin that keeps a queue or a connection which exists once. Default: `exclusive` for built-in plugins, else
   * `overlap`.
   */
  readonly reload?: 'overlap' | 'exclusive'
  /** The hooks this plugin calls. A plugin that listens to one of its hooks that is not listed gets a warning. */
  readonly hooks?: readonly Hook<unknown>[]
  /** Migrations of the tables of the plugin. Missing ones are applied in this order before `setup`. */
  readonly migrations?: readonly Migration[]
  /**
   * Files in the home that belong to the database, such as a proof of its contents, named `<plugin>.<extension>`. They
   * are copied before the database and restored with it. If one exists and the database does not, the daemon refuses to
   * start.
   */
  readonly databaseSidecars?: readonly string[]
  /** Pages that the web page lists. Their files are read on request. */
  readonly pages?: readonly PageDeclaration[]
  /** Offline work by name: it runs with or without a running daemon, and without other plugins. */
  readonly offline?: Readonly<Record<string, OfflineWork>>
  /** Registers everything and returns the provided services. If it throws, every registration is undone. */
  setup(ctx: PluginContext<PluginConfig<C, S>, R, O>): Promise<Services<P>> | Services<P>
}
/** A plugin with any configuration and services. */
export type AnyPlugin = PluginDefinition<ConfigSchema, Tokens, Tokens, Tokens, Sections>

/**
 * A token by which plugins provide and require a service: `defineService<Weather>()('weather')`. The id is unique in
 * the daemon.
 */
export function defineService<T>() {
  return <Id extends string>(id: Id, options: Pick<ServiceToken<T>, 'remote'> = {}): ServiceToken<T, Id> => ({
    id,
    ...options,
  })
}
/** Returns the definition; the compiler checks it. A plugin exports the result as default. */
export function definePlugin<
  C extends ConfigSchema,
  R extends Tokens = {},
  O extends Tokens = {},
  P extends Tokens = {},
  S extends Sections = {},
>(definition: PluginDefinition<C, R, O, P, S>): PluginDefinition<C, R, O, P, S> {
  return definition
}
