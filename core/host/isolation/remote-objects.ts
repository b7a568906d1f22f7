import * as v from 'valibot'
import { Refusal } from '../../errors/error.ts'
import type { PluginNetwork } from '../../net/connection.ts'
import type { RemoteEnd, RemoteMethods } from '../remote-service.ts'
import { describeSchema, readSchema } from './config-schema.ts'
import type { Peer } from './peer.ts'
import { remoteNetwork, serveNetwork } from './remote-network.ts'

/** Objects of this side that the other one may call: it may not fill the memory of this one. */
const MAX_OBJECTS = 4096
const ObjectCall = v.object({ object: v.number(), method: v.string(), args: v.array(v.unknown()) })

/** Objects whose methods the other side calls. Only what is exposed by name can be called. */
export class RemoteObjects implements RemoteEnd {
  readonly #peer: () => Peer
  readonly #objects = new Map<number, ReadonlyMap<string, RemoteMethods[string]>>()
  #lastId = 0

  constructor(peer: () => Peer) {
    this.#peer = peer
  }

  expose(methods: RemoteMethods): number {
    if (this.#objects.size >= MAX_OBJECTS)
      throw new Refusal('rate_limit', `More than ${MAX_OBJECTS} connections and other objects at once are not kept`)
    const id = ++this.#lastId
    this.#objects.set(id, new Map(Object.entries(methods)))
    return id
  }
  release(object: number): void {
    this.#objects.delete(object)
  }
  exposeNetwork(network: PluginNetwork): number {
    return this.expose(serveNetwork(network, this))
  }
  network(object: number): PluginNetwork {
    return remoteNetwork(this, object)
  }
  readonly describeSchema = describeSchema
  readonly readSchema = readSchema

  async call(object: number, method: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    return await this.#peer().call('object', { object, method, args }, signal)
  }
  async *stream(
    object: number,
    method: string,
    args: readonly unknown[],
    signal?: AbortSignal,
  ): AsyncGenerator<unknown> {
    yield* (await this.call(object, method, args, signal)) as AsyncIterable<unknown>
  }

  /** A call of the other side. */
  async handle(input: unknown, signal: AbortSignal): Promise<unknown> {
    const { object, method, args } = v.parse(ObjectCall, input)
    const run = this.#objects.get(object)?.get(method)
    if (!run) throw new Refusal('forbidden', `"${method}" is not available to a plugin in a process of its own`)
    return await run(args, signal)
  }
}
