import { Hookable } from 'hookable'
import type { OnDefect } from '../errors/defect.ts'
import { Barrier } from '../scope/barrier.ts'
import type { Scope } from '../scope/scope.ts'
import { isThenable } from '../scope/thenable.ts'
import type { Hook, HookKind, Hooks, Listener } from './hook.ts'

type Listening = (value: unknown) => unknown
/** A promise only where there is something to wait for: most listeners end at once. */
type Call = Listening
interface Registered {
  readonly plugin: string
  readonly kind: HookKind
  readonly rank: number
  readonly call: Call
}

const nothing = Promise.resolve()
/** Runs the listeners in order. With `threads`, each gets the result of the one before. */
const serial =
  (threads: boolean) =>
  async (calls: readonly Listening[], [first]: readonly unknown[]): Promise<unknown> => {
    let value = first
    for (const call of calls) {
      const answer = call(value)
      const settled = isThenable(answer) ? await answer : answer
      if (threads) value = settled
    }
    return value
  }
const together = async (calls: readonly Listening[], [payload]: readonly unknown[]): Promise<void> => {
  const running: PromiseLike<unknown>[] = []
  for (const call of calls) {
    const answer = call(payload)
    if (isThenable(answer)) running.push(answer)
  }
  if (running.length > 0) await Promise.all(running)
}
const gates = serial(false)
const transforms = serial(true)

/**
 * Carries hooks between plugins. Hooks are compared by id, so a reloaded plugin finds the listeners for its old copy.
 */
export class HookBus {
  readonly #hookable = new Hookable()
  readonly #registered = new Map<string, readonly Registered[]>()
  readonly #ranks = new Map<string, number>()
  readonly #barrier = new Barrier()
  readonly #onDefect: OnDefect

  /** `onDefect` is called for listeners that fail after the event. */
  constructor(onDefect: OnDefect) {
    this.#onDefect = onDefect
  }

  /** The hooks of one plugin. Its listeners keep their place in the order when it is reloaded. */
  forPlugin(scope: Scope): Hooks {
    const rank = this.#ranks.get(scope.name) ?? this.#ranks.size
    this.#ranks.set(scope.name, rank)
    return {
      on: <T, K extends HookKind>(hook: Hook<T, K>, listener: Listener<T, K>) => {
        const run = listener as (value: unknown) => unknown
        const call: Call =
          hook.kind === 'notify'
            ? isolated(hook.id, scope, this.#onDefect, run)
            : (value) => scope.call(() => run(value))
        const registered: Registered = { plugin: scope.name, kind: hook.kind, rank, call }
        this.#add(hook.id, registered)
        scope.own('hook', `${hook.kind} ${hook.id}`, () => this.#remove(hook.id, registered))
      },
      emit: async <T>(hook: Hook<T, 'notify'>, payload: T) => {
        await this.#settle(hook.id, scope.name, () => this.#hookable.callHookWith(together, hook.id, [payload]))
      },
      check: async <T>(hook: Hook<T, 'gate'>, payload: T) => {
        await this.#settle(hook.id, scope.name, () => this.#hookable.callHookWith(gates, hook.id, [payload]))
      },
      apply: async <T>(hook: Hook<T, 'transform'>, value: T) => {
        if (this.#idle(hook.id)) return value
        // A listener returns the payload type it took: the hook's value is typed once for both sides.
        return (await this.#settle(hook.id, scope.name, () =>
          this.#hookable.callHookWith(transforms, hook.id, [value]),
        )) as T
      },
    }
  }

  /** How many listeners there are now, by hook id. */
  counts(): ReadonlyMap<string, number> {
    return new Map([...this.#registered].map(([id, listeners]) => [id, listeners.length]))
  }

  /**
   * Holds hooks that these plugins listen to until the returned function is called: a gate must not be open during a
   * reload.
   */
  hold(plugins: readonly string[]): () => void {
    const ids = [...this.#registered].filter(([, listeners]) =>
      listeners.some(({ plugin }) => plugins.includes(plugin)),
    )
    return this.#barrier.hold(
      ids.map(([id]) => id),
      plugins,
    )
  }

  #idle(id: string): boolean {
    return !this.#registered.has(id) && !this.#barrier.holds(id)
  }

  #settle(id: string, caller: string, call: () => Promise<unknown> | void): Promise<unknown> | void {
    if (this.#idle(id)) return nothing
    const held = this.#barrier.wait(id, caller)
    return held ? held.then(call) : call()
  }

  #add(id: string, registered: Registered): void {
    const others = this.#registered.get(id) ?? []
    const other = others[0]
    if (other && other.kind !== registered.kind)
      throw new Error(
        `hook "${id}" is a ${other.kind} for plugin "${other.plugin}" ` +
          `and a ${registered.kind} for "${registered.plugin}"`,
      )
    this.#publish(
      id,
      [...others, registered].sort((a, b) => a.rank - b.rank),
    )
  }

  #remove(id: string, registered: Registered): void {
    this.#publish(
      id,
      (this.#registered.get(id) ?? []).filter((other) => other !== registered),
    )
  }

  #publish(id: string, listeners: readonly Registered[]): void {
    this.#hookable.clearHook(id)
    if (listeners.length === 0) this.#registered.delete(id)
    else this.#registered.set(id, listeners)
    for (const { call } of listeners) this.#hookable.hook(id, call as () => Promise<void>)
  }
}

/** A notification reports what has happened, so a failing listener stops nothing. */
function isolated(id: string, scope: Scope, onDefect: OnDefect, run: (value: unknown) => unknown): Call {
  const failed = (error: unknown): void => {
    if (!scope.signal.aborted) onDefect(error, `plugin "${scope.name}", listener of ${id}`)
  }
  return (value) => {
    try {
      const running = scope.call(() => run(value))
      return isThenable(running) ? running.then(undefined, failed) : undefined
    } catch (error) {
      return failed(error)
    }
  }
}
