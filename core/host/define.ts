import type * as v from 'valibot'
import type { PluginContext } from './context.ts'

/** Compared by id, never by identity: a reloaded plugin holds its own copy of every token. */
export interface ServiceToken<T, Id extends string = string> { readonly id: Id; readonly '~type'?: T }
export type Tokens = Readonly<Record<string, ServiceToken<any>>>
export type Services<T extends Tokens> = { readonly [K in keyof T]: T[K] extends ServiceToken<infer S> ? S : never }
export type ConfigSchema = v.GenericSchema<any, Record<string, unknown>>

/** `id` is unique in its plugin and never changes; the SQL runs on SQLite and PostgreSQL and is additive. */
export interface Migration { readonly id: string; readonly sql: string }

export interface PluginDefinition<C extends ConfigSchema, R extends Tokens, O extends Tokens, P extends Tokens> {
  /** kebab-case; also the folder, the config section `[plugins.<name>]`, the table prefix and the log tag. */
  readonly name: string
  readonly version: string
  /** Schema of the plugin's section of the configuration; it must accept `{}` or the plugin needs configuring first. */
  readonly config: C
  /** Services that must be there for the whole life of this plugin. The host orders by them and refuses cycles. */
  readonly requires?: R
  /** Services that may come and go. Ask with `ctx.optional` each time. */
  readonly optional?: O
  readonly provides?: P
  readonly migrations?: readonly Migration[]
  /** Registers everything and returns what the plugin provides. A throw leaves nothing behind. */
  setup(ctx: PluginContext<v.InferOutput<C>, R, O>): Promise<Services<P>> | Services<P>
}
export type AnyPlugin = PluginDefinition<any, any, any, any>

export function defineService<T>() {
  return <Id extends string>(id: Id): ServiceToken<T, Id> => ({ id })
}
export function definePlugin<C extends ConfigSchema, R extends Tokens = {}, O extends Tokens = {}, P extends Tokens = {}>(
  definition: PluginDefinition<C, R, O, P>,
): PluginDefinition<C, R, O, P> {
  return definition
}
