import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import * as v from 'valibot'
import { Refusal } from '../../errors/error.ts'
import { startPluginProcess } from '../../process/plugin-process.ts'
import type { PluginProcess } from '../../process/plugin-process.ts'
import type { Dispose } from '../../scope/scope.ts'
import type { AnyPlugin, ServiceToken, Tokens } from '../define.ts'
import { PluginProblem } from '../definition.ts'
import { readableByLoader } from '../read-definition.ts'
import { Bridge } from './bridge.ts'
import type { Context } from './bridge.ts'
import type { RemoteContract } from '../remote-service.ts'
import { readSchema } from './config-schema.ts'
import { Peer } from './peer.ts'
import type { Handle } from './peer.ts'
import { RemoteObjects } from './remote-objects.ts'
import { Description } from './shapes.ts'
import { messageOf } from '../../errors/message.ts'

export interface IsolationSettings {
  readonly memoryMb: number
  /** Milliseconds without an answer after which the process is ended. */
  readonly hangMs: number
  /** The longest pause before it is started again. */
  readonly maxRestartMs: number
  /** Bytes of one message. */
  readonly maxMessageBytes: number
  /** Milliseconds that a gate or a transform may take. */
  readonly hookMs: number
}
export interface IsolationDeps {
  readonly settings: () => IsolationSettings
  /** Folder for the working folders of the processes. */
  readonly workFolder: string
  /** Definitions of all plugins, whose tokens say how a service crosses. */
  readonly known: () => readonly AnyPlugin[]
}
/** A definition whose code runs elsewhere. `state`: what is wrong with its process. */
export type IsolatedDefinition = AnyPlugin & { readonly isolated: { state(): string | undefined } }

/** A process that runs for this long was not started in vain. */
const STABLE_MS = 60_000
const MIN_RESTART_MS = 250
const DESCRIBE_MS = 30_000

/** The definition of a plugin whose code is never evaluated in this process. Throws `PluginProblem`. */
export async function readIsolated(folder: string, deps: IsolationDeps): Promise<IsolatedDefinition> {
  const { unsupported, config, ...description } = await describe(folder, deps)
  if (unsupported.length > 0)
    throw new PluginProblem(
      `${folder} uses ${unsupported.join(', ')}, which is not available with isolation = "worker": ` +
        'set plugins.isolation to "none" for it, or use only what crosses to another process',
    )
  let state: string | undefined
  const definition = {
    ...description,
    config: readSchema(config),
    async setup(ctx: Context) {
      const plugin = new IsolatedPlugin({ folder, deps, ctx, requires: description.requires ?? {} }, (now) => {
        state = now
      })
      await plugin.start()
      return {}
    },
    isolated: { state: () => state },
  }
  return definition as unknown as IsolatedDefinition
}

interface Channel {
  readonly peer: Peer
  readonly process: PluginProcess
}
async function openChannel(
  folder: string,
  { settings, workFolder }: IsolationDeps,
  handle: Handle,
  onExit: (reason: string) => void,
): Promise<Channel> {
  const work = join(workFolder, basename(folder).replace(/\.m?[jt]s$/, ''))
  mkdirSync(work, { recursive: true, mode: 0o700 })
  let peer: Peer | undefined
  const process = await startPluginProcess({
    readable: [...readableByLoader(), folder, work],
    folder: work,
    memoryMb: settings().memoryMb,
    maxMessageBytes: settings().maxMessageBytes,
    onMessage: (message) => peer?.receive(message),
    onExit(reason) {
      peer?.close(
        new Refusal('service_unavailable', `The process of the plugin ended: ${reason}`, { retryAfterSecs: 1 }),
      )
      onExit(reason)
    },
  })
  peer = new Peer((message) => process.send(message), handle)
  return { peer, process }
}

async function describe(folder: string, deps: IsolationDeps): Promise<Description> {
  const nothing: Handle = () => {
    throw new Refusal('forbidden', 'The plugin is not set up yet')
  }
  const { peer, process } = await openChannel(folder, deps, nothing, () => undefined)
  try {
    return v.parse(Description, await within(DESCRIBE_MS, (signal) => peer.call('describe', { folder }, signal)))
  } catch (error) {
    throw new PluginProblem(messageOf(error), { cause: error })
  } finally {
    process.kill()
    await process.ended
  }
}

/** As `AbortSignal.timeout`, but its timer ends with the work, and keeps the daemon alive until then. */
async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`the process did not answer within ${ms} ms`)), ms)
  try {
    return await work(late.signal)
  } finally {
    clearTimeout(timer)
  }
}

/** The process does not keep the daemon alive, and at a start nothing else does. */
async function keepAlive<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, DESCRIBE_MS)
  try {
    return await work
  } finally {
    clearInterval(timer)
  }
}

function findToken(definitions: readonly AnyPlugin[], id: string): ServiceToken<unknown> | undefined {
  return definitions.flatMap(({ provides }) => Object.values(provides ?? {})).find((one) => one.id === id)
}

interface IsolatedPluginOptions {
  readonly folder: string
  readonly deps: IsolationDeps
  readonly ctx: Context
  readonly requires: Tokens
}
/** One running copy: its process, started again whenever it ends. */
class IsolatedPlugin {
  readonly #folder: string
  readonly #deps: IsolationDeps
  readonly #ctx: Context
  readonly #setState: (state: string | undefined) => void
  readonly #bridge: Bridge
  readonly #requires: Tokens
  /** Ends what the process before registered with services. */
  readonly #disposals: Dispose[] = []
  #channel: Channel | undefined
  /** Its process or the one before: also one that has just ended may have left something. */
  #last: PluginProcess | undefined
  #isStopped = false
  #isReady = false
  #attempts = 0
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor({ folder, deps, ctx, requires }: IsolatedPluginOptions, setState: (state: string | undefined) => void) {
    this.#folder = folder
    this.#deps = deps
    this.#ctx = ctx
    this.#setState = setState
    this.#requires = requires
    this.#bridge = new Bridge(ctx, {
      call: (method, input, signal) => this.#call(method, input, signal),
      hookMs: () => deps.settings().hookMs,
    })
  }

  async start(): Promise<void> {
    this.#ctx.own('process', () => this.#stop())
    for (const { id } of Object.values(this.#requires))
      this.#ctx.own(`registrations with ${id}`, () => this.#disposeServices())
    this.#ctx.leaving.addEventListener('abort', () => void this.#tryCall('leave'), { once: true })
    this.#ctx.signal.addEventListener('abort', () => void this.#tryCall('abort'), { once: true })
    await this.#open()
  }

  async #open(): Promise<void> {
    this.#isReady = false
    this.#startedAt = performance.now()
    const objects: RemoteObjects = new RemoteObjects(() => channel.peer)
    const handle: Handle = (method, input, signal) =>
      method === 'object' ? objects.handle(input, signal) : this.#bridge.handle(method, input, signal)
    const channel: Channel = await openChannel(this.#folder, this.#deps, handle, (reason) =>
      this.#ended(channel, reason),
    )
    this.#channel = channel
    this.#last = channel.process
    if (this.#isStopped) return channel.process.kill()
    await this.#disposeServices()
    const access = await this.#expose(objects)
    await keepAlive(channel.peer.call('setup', { folder: this.#folder, config: this.#ctx.config, access }))
    this.#isReady = true
    this.#setState(undefined)
    this.#watch(channel)
  }

  async #expose(remote: RemoteObjects): Promise<object> {
    const { operator, services } = this.#ctx
    const entries = Object.entries(this.#requires).map(async ([key, { id }]) => {
      const contract = (await findToken(this.#deps.known(), id)?.remote?.()) as RemoteContract | undefined
      if (!contract) throw new PluginProblem(`service "${id}" does not cross to a process of its own`)
      const own = (_: string, dispose: Dispose): void => void this.#disposals.push(dispose)
      const service = (services as Readonly<Record<string, unknown>>)[key]
      return [key, remote.expose(contract.default.serve(service, { remote, network: this.#ctx, own }))] as const
    })
    return {
      network: remote.exposeNetwork(this.#ctx),
      ...(operator && { operator: remote.exposeNetwork(operator) }),
      services: Object.fromEntries(await Promise.all(entries)),
    }
  }
  /** What a process registered with services is replaced by what the next one registers. */
  async #disposeServices(): Promise<void> {
    for (const dispose of this.#disposals.splice(0)) await dispose()
  }

  async #call(method: string, input: unknown, signal?: AbortSignal): Promise<unknown> {
    if (!this.#channel || !this.#isReady)
      throw new Refusal('service_unavailable', 'The process of the plugin is being started', { retryAfterSecs: 1 })
    return await this.#channel.peer.call(method, input, signal)
  }
  async #tryCall(method: string): Promise<void> {
    await this.#channel?.peer.call(method, {}).catch((error: unknown) => this.#ctx.log.debug(`${method} failed`, error))
  }

  /** A process whose event loop stands still does not answer. */
  #watch(channel: Channel): void {
    const { hangMs } = this.#deps.settings()
    clearInterval(this.#heartbeat)
    this.#heartbeat = setInterval(() => {
      channel.peer.call('ping', {}, AbortSignal.timeout(hangMs)).catch((error: unknown) => {
        if (channel !== this.#channel || this.#isStopped) return
        this.#ctx.log.error(`its process did not answer for ${hangMs} ms and is ended`, error)
        channel.process.kill()
      })
    }, hangMs / 2).unref()
  }

  #ended(channel: Channel, reason: string): void {
    if (this.#isStopped || channel !== this.#channel) return
    clearInterval(this.#heartbeat)
    const wasReady = this.#isReady
    this.#isReady = false
    this.#channel = undefined
    // A first setup that fails is reported by the host.
    if (!wasReady && this.#attempts === 0) return
    this.#restartLater(reason)
  }

  #restartLater(reason: string): void {
    if (performance.now() - this.#startedAt > STABLE_MS) this.#attempts = 0
    const { maxRestartMs } = this.#deps.settings()
    const ms = Math.min(maxRestartMs, MIN_RESTART_MS * 2 ** this.#attempts++)
    const state = `its process ended: ${reason}; it is started again (attempt ${this.#attempts})`
    this.#setState(state)
    this.#ctx.log.error(state)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#open().catch((error: unknown) => {
        // One that has ended meanwhile is started again by that.
        const { process } = this.#channel ?? {}
        this.#channel = undefined
        process?.kill()
        if (!this.#isStopped) this.#restartLater(messageOf(error))
      })
    }, ms).unref()
  }

  async #stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    clearInterval(this.#heartbeat)
    try {
      await this.#dispose()
    } finally {
      this.#last?.kill()
      await this.#last?.ended
    }
  }
  /** What the plugin owns in its process. A failure is that of unloading. */
  async #dispose(): Promise<void> {
    if (!this.#isReady) return
    await within(this.#deps.settings().hookMs, (signal) => this.#call('end', {}, signal))
  }
}
