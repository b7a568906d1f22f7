import type { Schema } from '../config/shape.ts'
import type { PluginNetwork } from '../net/connection.ts'
import type { Dispose } from '../scope/scope.ts'

/** Methods that the other process may call, by name, with their arguments. A result may be a stream. */
export type RemoteMethods = Readonly<Record<string, (args: readonly unknown[], signal: AbortSignal) => unknown>>

/**
 * One end of the channel between the daemon and the process of a plugin. Plain values, bytes and async iterables cross;
 * functions do not: expose them by name.
 */
export interface RemoteEnd {
  /** Makes methods callable for the other side. Returns the id by which it calls them. */
  expose(methods: RemoteMethods): number
  /** Ends that. */
  release(object: number): void
  /** Calls a method that the other side exposed. Rejects with its error, and when its process ends. */
  call(object: number, method: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown>
  /** As `call`, for a method that returns an async iterable. */
  stream(object: number, method: string, args: readonly unknown[], signal?: AbortSignal): AsyncIterable<unknown>
  /** Exposes a network. */
  exposeNetwork(network: PluginNetwork): number
  /** The network that the other side exposed. */
  network(object: number): PluginNetwork
  /** A schema as plain data: keys, types, limits and which keys are secret. What else it checks does not cross. */
  describeSchema(schema: Schema): unknown
  /** The schema of such data, which is not trusted. */
  readSchema(description: unknown): Schema
}

/** How a service crosses to plugins in processes of their own. */
export interface RemoteService<T> {
  /** In the process of the plugin: the service, whose calls cross. `register` is awaited by the setup of the plugin. */
  client(remote: RemoteEnd, register: (method: string, ...args: readonly unknown[]) => void): T
  /** In the daemon: what the client registers. `own` ends it with the process. */
  serve(service: T, deps: RemoteServiceDeps): RemoteMethods
}
/** What the half in the daemon gets. */
export interface RemoteServiceDeps {
  /** The end of the channel to the process. */
  readonly remote: RemoteEnd
  /** The network of the plugin. */
  readonly network: PluginNetwork & { readonly operator?: PluginNetwork }
  /** Disposes a registration when the process ends or the plugin unloads. */
  own(label: string, dispose: Dispose): void
}

/** What `remote` of a token loads. */
export interface RemoteContract {
  readonly default: RemoteService<unknown>
}
