import * as v from 'valibot'
import type { Hook } from '../../hooks/hook.ts'
import type { AnyRoute } from '../../http/route.ts'
import { openInherited } from '../../net/inherited-socket.ts'
import { forgetVariable } from '../../process/inherited.ts'
import { MessagePipe } from '../../process/message-pipe.ts'
import { MARK } from '../../process/orphan-processes.ts'
import { Refusal } from '../../errors/error.ts'
import { describeIssues } from '../../tools/registry.ts'
import { toInputSchema } from '../../tools/input-schema.ts'
import type { ToolCallContext, ToolResult } from '../../tools/tool.ts'
import type { Dispose } from '../../scope/scope.ts'
import type { PluginContext } from '../context.ts'
import type { AnyPlugin, Tokens } from '../define.ts'
import { PluginProblem } from '../definition.ts'
import { readDefinition } from '../read-definition.ts'
import type { RemoteContract } from '../remote-service.ts'
import { describeSchema } from './config-schema.ts'
import { checkTool, notAvailable, unsupportedParts } from './crossing.ts'
import { remoteMembers } from './remote-members.ts'
import { RemoteObjects } from './remote-objects.ts'
import { Peer } from './peer.ts'
import { callRoute, describeRoute } from './remote-route.ts'
import type { Description, Registration } from './shapes.ts'
import { messageOf } from '../../errors/message.ts'

type Context = PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens>
type Run = (input: never, signal: AbortSignal) => unknown

/** The end of the channel in the process of the plugin. Runs until the daemon ends it. */
export function serve(): void {
  // Only for the daemon, which reads it in /proc.
  forgetVariable(MARK)
  const socket = openInherited(Number(process.argv[2]))
  // The daemon has ended.
  socket.on('close', () => process.exit())
  const pipe = new MessagePipe(socket, {
    maxBytes: Number.MAX_SAFE_INTEGER,
    onMessage: (message) => served.peer.receive(message),
    onProblem: (reason) => {
      throw new Error(reason)
    },
  })
  const served = new ServedPlugin((message) => pipe.send(message))
}

interface Call {
  readonly folder: string
  readonly config: unknown
  readonly key: string
  readonly access: Exposed
}
/** Ids of what the daemon exposes. */
interface Exposed {
  readonly network: number
  readonly operator?: number
  readonly services: Readonly<Record<string, number>>
}

class ServedPlugin {
  readonly peer: Peer
  readonly #objects = new RemoteObjects(() => this.peer)
  readonly #runs = new Map<string, Run>()
  readonly #leaving = new AbortController()
  readonly #end = new AbortController()
  readonly #owned: { readonly label: string; readonly dispose: Dispose }[] = []
  #listeners = 0
  /** Registrations the daemon has not answered yet: setup fails with the first that is refused. */
  readonly #pending: Promise<unknown>[] = []

  constructor(send: (message: object) => void) {
    this.peer = new Peer(send, (method, input, signal) => this.#handle(method, input as never, signal))
  }

  async #handle(method: string, input: Call, signal: AbortSignal): Promise<unknown> {
    if (method === 'ping') return 'pong'
    if (method === 'object') return await this.#objects.handle(input, signal)
    if (method === 'describe') return describe(await readDefinition(input.folder))
    if (method === 'setup') return await this.#setUp(await readDefinition(input.folder), input)
    if (method === 'leave') return this.#leaving.abort(new Error('the plugin is being unloaded'))
    if (method === 'abort') return this.#end.abort(new Error('the plugin is unloaded'))
    if (method === 'end') return await this.#dispose()
    const run = this.#runs.get(input.key)
    if (!run) throw new Error(`there is no ${method} "${input.key}"`)
    return await run(input as never, signal)
  }

  async #setUp(definition: AnyPlugin, { config: written, access, folder }: Call): Promise<void> {
    const config = v.safeParse(definition.config, written)
    if (!config.success)
      throw new PluginProblem(
        config.issues
          .map((issue) => `plugins.${definition.name}.${v.getDotPath(issue) ?? ''}: ${issue.message}`)
          .join('; '),
      )
    try {
      await definition.setup(await this.#createContext(definition, config.output, access))
      await Promise.all(this.#pending)
    } catch (error) {
      // The stack stays in this process.
      const { setupProblem } = await import('../import-problem.ts')
      throw new PluginProblem(await setupProblem(error, folder), { cause: error })
    }
  }

  /** What the plugin owns is disposed, the newest first; all of it, whatever fails. */
  async #dispose(): Promise<void> {
    const failures: string[] = []
    for (const { label, dispose } of this.#owned.splice(0).toReversed())
      try {
        await dispose()
      } catch (error) {
        failures.push(`${label}: ${messageOf(error)}`)
      }
    if (failures.length > 0) throw new Error(failures.join('; '))
  }

  /** The daemon waits for this work when it unloads the plugin. */
  async #run<T>(work: () => Promise<T> | T): Promise<T> {
    const running = new AbortController()
    // It ends by being aborted.
    this.peer.call('run', {}, running.signal).catch(() => undefined)
    try {
      return await work()
    } finally {
      running.abort()
    }
  }

  #register(registration: Registration, run?: Run): void {
    if (run) this.#runs.set(registration.key, run)
    this.#await(this.peer.call('register', registration))
  }

  #await(answer: Promise<unknown>): void {
    // The rejection comes from the daemon: what counts is which line of the plugin made the call.
    const { stack } = new Error('called')
    const located = answer.catch((error: unknown) => {
      if (error instanceof Error && stack !== undefined) error.stack = stack
      throw error
    })
    // A rejection is seen by setup; one that comes later is in the log of the daemon.
    located.catch(() => undefined)
    this.#pending.push(located)
  }

  async #services({ requires = {} }: AnyPlugin, { services }: Exposed): Promise<Readonly<Record<string, unknown>>> {
    const found = Object.entries(requires).map(async ([key, { id, remote }]) => {
      const contract = (await remote?.()) as RemoteContract | undefined
      const object = services[key]
      if (!contract || object === undefined) throw new PluginProblem(`service "${id}" does not cross`)
      const register = (method: string, ...args: readonly unknown[]): void =>
        this.#await(this.#objects.call(object, method, args))
      return [key, contract.default.client(this.#objects, register)] as const
    })
    return Object.fromEntries(await Promise.all(found))
  }

  async #createContext(
    definition: AnyPlugin,
    config: Readonly<Record<string, unknown>>,
    access: Exposed,
  ): Promise<Context> {
    return {
      ...remoteMembers(this.peer, (registration) => this.#register(registration)),
      ...this.#objects.network(access.network),
      ...(access.operator !== undefined && { operator: this.#objects.network(access.operator) }),
      config,
      // A change starts the process again.
      onConfigChange: () => undefined,
      services: await this.#services(definition, access),
      optional: () => notAvailable('ctx.optional'),
      routes: {
        add: (...routes) => routes.forEach((route) => this.#addRoute(route)),
        addSocket: () => notAvailable('ctx.routes.addSocket'),
      },
      hooks: {
        on: (hook, listener) => this.#listen(hook, listener as (value: never) => unknown),
        ...this.#calling(),
      },
      tools: this.#tools(),
      jobs: {
        cron: (label, cron, run) =>
          this.#register({ kind: 'job', key: `job ${label}`, label, cron }, (_: never, signal) => run(signal)),
        every: (label, ms, run) =>
          this.#register({ kind: 'job', key: `job ${label}`, label, ms }, (_: never, signal) => run(signal)),
      },
      leaving: this.#leaving.signal,
      signal: this.#end.signal,
      own: (label, dispose) => void this.#owned.push({ label, dispose }),
      run: (work) => this.#run(work),
    }
  }

  #addRoute(route: AnyRoute): void {
    this.#register(describeRoute(route), (call: Parameters<typeof callRoute>[1], signal) =>
      callRoute(route, call, signal),
    )
  }

  #listen(hook: Hook<unknown>, listener: (value: never) => unknown): void {
    const { id, kind } = hook
    const number = ++this.#listeners
    this.#register(
      { kind: 'hook', key: `hook ${id} ${number}`, id, hook: kind },
      ({ payload }: { readonly payload: never }) => listener(payload),
    )
  }

  #calling(): Omit<Context['hooks'], 'on'> {
    const call = (method: string, id: string, payload: unknown): Promise<unknown> =>
      this.peer.call(method, { id, payload })
    return {
      emit: async ({ id }, payload) => void (await call('emit', id, payload)),
      check: async ({ id }, payload) => void (await call('check', id, payload)),
      apply: async ({ id }, value) => (await call('apply', id, value)) as typeof value,
    }
  }

  #tools(): Context['tools'] {
    return {
      add: (...tools) => {
        for (const tool of tools) {
          checkTool(tool)
          const { name, title, description, outputSchema, risk, effect, polls, needs, timeoutSecs, labels, refuses } =
            tool
          this.#register(
            {
              kind: 'tool',
              key: `tool ${name}`,
              name,
              title,
              description,
              outputSchema: outputSchema as Record<string, unknown> | undefined,
              risk,
              effect,
              polls,
              needs,
              timeoutSecs,
              labels: labels && [...labels],
              refuses: refuses && [...refuses],
              input: toInputSchema(tool.input) as Record<string, unknown>,
            },
            async ({ input, call }: { readonly input: unknown; readonly call: ToolCallContext }, signal) => {
              const args = v.safeParse(tool.input, input)
              if (!args.success) throw new Refusal('invalid_request', describeIssues(name, args.issues))
              return await tool.run(args.output, { ...call, signal })
            },
          )
        }
      },
      set: () => notAvailable('ctx.tools.set'),
      list: () => notAvailable('ctx.tools.list'),
      find: () => notAvailable('ctx.tools.find'),
      call: async (name, args, { signal, ...call }) =>
        (await this.peer.call('tool', { name, args, call }, signal)) as ToolResult,
      recover: () => notAvailable('ctx.tools.recover'),
      protectSecret: () => notAvailable('ctx.tools.protectSecret'),
      containsSecret: () => notAvailable('ctx.tools.containsSecret'),
    }
  }
}

function describe(definition: AnyPlugin): Description {
  const { name, version, apiVersion, uses, migrations, pages, reload, outbound, hooks, requires, config } = definition
  return {
    name,
    version,
    apiVersion,
    uses: uses && { ...uses },
    migrations: migrations?.map(({ id, sql }) => ({ id, sql })),
    pages: pages?.map((page) => ({ ...page })),
    reload,
    outbound,
    hooks: hooks?.map(({ id, kind }) => ({ id, kind })),
    requires: requires && Object.fromEntries(Object.entries(requires).map(([key, { id }]) => [key, { id }] as const)),
    config: describeSchema(config),
    unsupported: [...unsupportedParts(definition)],
  }
}
