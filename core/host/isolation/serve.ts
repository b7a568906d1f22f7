import * as v from 'valibot'
import type { Hook } from '../../hooks/hook.ts'
import type { AnyRoute, RouteInput } from '../../http/route.ts'
import { forgetVariable } from '../../process/inherited.ts'
import { MARK } from '../../process/orphan-processes.ts'
import { parse } from '../../schema/parse.ts'
import { toInputSchema } from '../../tools/input-schema.ts'
import type { ToolCallContext } from '../../tools/tool.ts'
import type { PluginContext } from '../context.ts'
import type { AnyPlugin, Tokens } from '../define.ts'
import { PluginProblem } from '../definition.ts'
import { readDefinition } from '../read-definition.ts'
import { remoteMembers } from './remote-members.ts'
import { Peer } from './peer.ts'
import type { Description, Registration } from './shapes.ts'
import { unsupportedParts } from './unsupported.ts'

type Context = PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens>
type Run = (input: never, signal: AbortSignal) => unknown

/** The end of the channel in the process of the plugin. Runs until the daemon ends it. */
export function serve(): void {
  // Only for the daemon, which reads it in /proc.
  forgetVariable(MARK)
  const served = new ServedPlugin((message) => process.send?.(message))
  process.on('message', (message) => served.peer.receive(message))
  process.on('disconnect', () => process.exit())
}

class ServedPlugin {
  readonly peer: Peer
  readonly #runs = new Map<string, Run>()
  readonly #leaving = new AbortController()
  readonly #end = new AbortController()
  /** Registrations the daemon has not answered yet: setup fails with the first that is refused. */
  readonly #pending: Promise<unknown>[] = []

  constructor(send: (message: object) => void) {
    this.peer = new Peer(send, (method, input, signal) => this.#handle(method, input as never, signal))
  }

  async #handle(
    method: string,
    input: { readonly folder: string; readonly config: unknown; readonly key: string },
    signal: AbortSignal,
  ): Promise<unknown> {
    if (method === 'ping') return 'pong'
    if (method === 'describe') return describe(await readDefinition(input.folder))
    if (method === 'setup') return await this.#setUp(await readDefinition(input.folder), input.config)
    if (method === 'leave') return this.#leaving.abort(new Error('the plugin is being unloaded'))
    const run = this.#runs.get(input.key)
    if (!run) throw new Error(`there is no ${method} "${input.key}"`)
    return await run(input as never, signal)
  }

  async #setUp(definition: AnyPlugin, written: unknown): Promise<void> {
    const config = v.safeParse(definition.config, written)
    if (!config.success)
      throw new PluginProblem(
        config.issues
          .map((issue) => `plugins.${definition.name}.${v.getDotPath(issue) ?? ''}: ${issue.message}`)
          .join('; '),
      )
    await definition.setup(this.#createContext(config.output))
    await Promise.all(this.#pending)
  }

  #register(registration: Registration, run?: Run): void {
    if (run) this.#runs.set(registration.key, run)
    const answer = this.peer.call('register', registration)
    // A rejection is seen by setup; one that comes later is in the log of the daemon.
    answer.catch(() => undefined)
    this.#pending.push(answer)
  }

  #createContext(config: Readonly<Record<string, unknown>>): Context {
    const unsupported = (): never => {
      throw new PluginProblem('this is not available to a plugin in a process of its own')
    }
    return {
      ...remoteMembers(this.peer, (registration) => this.#register(registration)),
      config,
      services: {},
      optional: () => undefined,
      routes: { add: (...routes) => routes.forEach((route) => this.#addRoute(route)), addSocket: unsupported },
      hooks: {
        on: (hook, listener) => this.#listen(hook, listener as (value: never) => unknown),
        ...this.#emitting(unsupported),
      },
      tools: this.#tools(unsupported),
      jobs: {
        cron: (label, cron, run) =>
          this.#register({ kind: 'job', key: `job ${label}`, label, cron }, (_: never, signal) => run(signal)),
        every: (label, ms, run) =>
          this.#register({ kind: 'job', key: `job ${label}`, label, ms }, (_: never, signal) => run(signal)),
      },
      leaving: this.#leaving.signal,
      signal: this.#end.signal,
      // The process ends with the plugin, and everything in it.
      own: () => undefined,
      run: async (work) => await work(),
    }
  }

  #addRoute(route: AnyRoute): void {
    const { method, path, summary, auth, effect, cost, status, body } = route
    if (auth === 'signed') throw new PluginProblem(`route ${path}: "signed" is not available in a process of its own`)
    const raw = body !== undefined && '~body' in body ? body.maxBytes : undefined
    this.#register(
      {
        kind: 'route',
        key: `route ${method} ${path}`,
        method,
        path,
        summary,
        auth,
        effect,
        cost,
        status,
        hasBody: body !== undefined,
        rawBytes: raw,
      },
      async ({ input }: { readonly input: RemoteInput }, signal) => {
        const { headers, ...rest } = input
        const answer: unknown = await route.handle({
          ...rest,
          params: route.params ? parse(route.params, rest.params, 'path') : rest.params,
          query: route.query ? parse(route.query, rest.query, 'query') : undefined,
          body: body === undefined || '~body' in body ? rest.body : parse(body, rest.body, 'body'),
          signal,
          header: (name: string) => headers[name],
        } as never)
        return answer
      },
    )
  }

  #listen(hook: Hook<unknown>, listener: (value: never) => unknown): void {
    if (hook.kind !== 'notify')
      throw new PluginProblem(`hook "${hook.id}" is a ${hook.kind}: a process of its own can only listen to notify`)
    this.#register({ kind: 'hook', key: `hook ${hook.id}`, id: hook.id }, ({ payload }: { readonly payload: never }) =>
      listener(payload),
    )
  }

  #emitting(unsupported: () => never): Omit<Context['hooks'], 'on'> {
    return {
      emit: async (hook, payload) => {
        await this.peer.call('emit', { id: hook.id, payload })
      },
      check: unsupported,
      apply: unsupported,
    }
  }

  #tools(unsupported: () => never): Context['tools'] {
    return {
      add: (...tools) => {
        for (const tool of tools) {
          const { name, description, risk, timeoutSecs, labels, refuses } = tool
          this.#register(
            {
              kind: 'tool',
              key: `tool ${name}`,
              name,
              description,
              risk,
              timeoutSecs,
              labels: labels && [...labels],
              refuses: refuses && [...refuses],
              input: toInputSchema(tool.input) as Record<string, unknown>,
            },
            async ({ input, call }: { readonly input: unknown; readonly call: ToolCallContext }, signal) =>
              await tool.run(parse(tool.input, input, 'body'), { ...call, signal }),
          )
        }
      },
      list: unsupported,
      find: unsupported,
      call: unsupported,
      protectSecret: unsupported,
      containsSecret: unsupported,
    }
  }
}

type RemoteInput = Omit<RouteInput<unknown, unknown, unknown>, 'signal' | 'header'> & {
  readonly headers: Readonly<Record<string, string>>
}

function describe(definition: AnyPlugin): Description {
  const { name, version, apiVersion, uses, migrations, pages, reload } = definition
  return {
    name,
    version,
    apiVersion,
    uses: uses && { ...uses },
    migrations: migrations?.map(({ id, sql }) => ({ id, sql })),
    pages: pages?.map((page) => ({ ...page, assets: page.assets && [...page.assets] })),
    reload,
    unsupported: [...unsupportedParts(definition)],
  }
}
