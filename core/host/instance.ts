import type { ConsolaInstance } from 'consola'
import { Scope } from '../scope/scope.ts'
import type { Access } from './access.ts'
import type { PluginContext } from './context.ts'
import type { AnyPlugin, Tokens } from './define.ts'
import { PluginProblem } from './definition.ts'
import type { Leftovers } from './leftovers.ts'

/** The members of the context of one plugin, bound to its scope. */
export type Members = Pick<
  PluginContext<never, Tokens, Tokens>,
  | 'routes'
  | 'credentials'
  | 'hooks'
  | 'tools'
  | 'storage'
  | 'db'
  | 'vault'
  | 'jobs'
  | 'metrics'
  | 'fetch'
  | 'admit'
  | 'connect'
  | 'startTls'
  | 'webSocket'
  | 'operator'
  | 'listen'
  | 'spawn'
>

type Config = Readonly<Record<string, unknown>>
type TakeConfig = (config: Config) => boolean | Promise<boolean>

/** One running copy of a plugin. */
export interface Instance {
  readonly scope: Scope
  /** Provided services, by id. */
  readonly services: ReadonlyMap<string, unknown>
  /** Whether it took a changed configuration without a new setup. */
  readonly takeConfig: (config: Config) => Promise<boolean>
  /** What it made without its context. */
  readonly leftovers: Leftovers | undefined
}
export interface Mounting {
  readonly log: ConsolaInstance
  readonly members: (scope: Scope, definition: AnyPlugin) => Members
  /** The registrations of a plugin that does not ship with the daemon are checked. */
  readonly access: Access
  /** Members that refuse what the plugin does not declare. */
  readonly restrict: (members: Members, definition: AnyPlugin) => Promise<Members>
  /** A service of a loaded plugin, by id. */
  readonly find: (id: string) => unknown
  readonly setupMs: number
  readonly drainMs: number
}

/** Sets a plugin up. If that fails, every registration is undone and the error is thrown. */
export async function mount(definition: AnyPlugin, config: Config, mounting: Mounting): Promise<Instance> {
  const scope = new Scope(definition.name)
  const changes: { take?: TakeConfig } = {}
  const takeConfig = async (next: Config): Promise<boolean> => {
    const { take } = changes
    return (
      take !== undefined &&
      (await withinTime(
        scope.run(() => take(next)),
        'taking its configuration',
        mounting,
      ))
    )
  }
  try {
    const context = createContext(definition, config, scope, {
      ...mounting,
      members: await membersOf(scope, definition, mounting),
      changes,
    })
    const setup = (): Promise<unknown> =>
      withinTime(
        scope.run(() => definition.setup(context)),
        'setup',
        mounting,
      )
    if (mounting.access === 'built-in')
      return { scope, takeConfig, services: collect(definition, await setup()), leftovers: undefined }
    const { watchSetup } = await import('./leftovers.ts')
    const { result, leftovers } = await watchSetup(setup)
    return { scope, takeConfig, services: collect(definition, result), leftovers }
  } catch (error) {
    await scope.close(mounting.drainMs).catch((closing: unknown) => {
      mounting.log.error(`plugin "${definition.name}" left something behind when its setup failed`, closing)
    })
    throw error
  }
}

async function membersOf(
  scope: Scope,
  definition: AnyPlugin,
  { members, access, restrict }: Mounting,
): Promise<Members> {
  const all = members(scope, definition)
  if (access === 'built-in') return all
  const { checkedMembers } = await import('./registration.ts')
  return checkedMembers(access === 'declared' ? await restrict(all, definition) : all, scope.name)
}

interface ContextParts extends Pick<Mounting, 'log' | 'find'> {
  readonly members: Members
  /** Keeps what the plugin registers for a change of its configuration. */
  readonly changes: { take?: TakeConfig }
}
function createContext(
  definition: AnyPlugin,
  config: Config,
  scope: Scope,
  { log, members, find, changes }: ContextParts,
): PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens> {
  const optional: Tokens = definition.optional ?? {}
  const required: Tokens = definition.requires ?? {}
  return {
    ...members,
    config,
    onConfigChange(take) {
      if (changes.take) throw new PluginProblem('onConfigChange was called twice: call it once, in setup')
      changes.take = take
    },
    services: Object.fromEntries(Object.entries(required).map(([key, { id }]) => [key, find(id)])),
    optional: (name) => {
      const token = optional[name]
      if (!token) throw new Error(`plugin "${definition.name}" does not declare the optional service "${name}"`)
      // Only the id of the token is compared: both sides import its type from the contract.
      return find(token.id) as never
    },
    log: taggedWhenUsed(log, definition.name),
    leaving: scope.leaving,
    signal: scope.signal,
    own: (label, dispose) => {
      scope.own('own', label, dispose)
    },
    run: (work) => scope.run(work),
  }
}

/** Created lazily: most plugins log nothing at the start, and creating a logger for each slows it down. */
function taggedWhenUsed(log: ConsolaInstance, name: string): ConsolaInstance {
  let tagged: ConsolaInstance | undefined
  return new Proxy(log, {
    get: (_, property) => Reflect.get((tagged ??= log.withTag(name)), property) as unknown,
    set: (_, property, value) => Reflect.set((tagged ??= log.withTag(name)), property, value),
  })
}

function collect(definition: AnyPlugin, provided: unknown): ReadonlyMap<string, unknown> {
  const tokens: Tokens = definition.provides ?? {}
  const given = new Map(typeof provided === 'object' && provided !== null ? Object.entries(provided) : [])
  const missing = Object.keys(tokens).filter((key) => given.get(key) === undefined)
  if (missing.length > 0)
    throw new PluginProblem(`setup did not return what the plugin provides: ${missing.join(', ')}`)
  return new Map(Object.entries(tokens).map(([key, { id }]) => [id, given.get(key)]))
}

async function withinTime<T>(work: Promise<T>, what: string, { setupMs: ms }: Pick<Mounting, 'setupMs'>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new PluginProblem(`${what} did not end within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
