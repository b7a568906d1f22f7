/**
 * - `notify`: it happened (past tense, `daemon:listening`). A listener that fails is logged; the others still run.
 * - `gate`: may it happen? (`plugin:work-starting`). A throw is the veto; a `Refusal` reaches the caller.
 * - `transform`: change a value on its way (`plugin:text-built`). A throw is the error of the operation.
 */
export type HookKind = 'notify' | 'gate' | 'transform'
/** A hook is a value, compared by `id`: a reloaded plugin holds its own copy of it. */
export interface Hook<T, K extends HookKind = HookKind> {
  /** Unique in the daemon, `<plugin>:<what>` in kebab-case, such as `daemon:listening`. */
  readonly id: string
  /** Whether it notifies, gates or transforms. */
  readonly kind: K
  readonly '~payload'?: T
}
/** A listener. That of a `transform` returns the value for the next one. */
export type Listener<T, K extends HookKind> = K extends 'transform'
  ? (value: T) => T | Promise<T>
  : (value: T) => void | Promise<void>

/** A hook that says that something happened; `T` is what its listeners are given. */
export const notify = <T>(id: string): Hook<T, 'notify'> => ({ id, kind: 'notify' })
/** A hook that asks whether something may happen; `T` is what its listeners are given. */
export const gate = <T>(id: string): Hook<T, 'gate'> => ({ id, kind: 'gate' })
/** A hook whose listeners change a value of type `T`, one after the other. */
export const transform = <T>(id: string): Hook<T, 'transform'> => ({ id, kind: 'transform' })

/** Listens to hooks and calls them. A plugin calls only its own. */
export interface Hooks {
  /** Listens until the plugin unloads. Listeners run in the order in which their plugins loaded. */
  on<T, K extends HookKind>(hook: Hook<T, K>, listener: Listener<T, K>): void
  /** Settles when every listener has ended. Never rejects. */
  emit<T>(hook: Hook<T, 'notify'>, payload: T): Promise<void>
  /** Rejects with the first veto. */
  check<T>(hook: Hook<T, 'gate'>, payload: T): Promise<void>
  /** The value after every listener. Rejects when one fails. */
  apply<T>(hook: Hook<T, 'transform'>, value: T): Promise<T>
}
