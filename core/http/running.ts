import type { Scope } from '../scope/scope.ts'
import type { Exchange } from './exchange.ts'

/** One abort listener per scope, however many requests run in it. */
export class ScopeSignals {
  #listening = new WeakMap<Scope, Set<Running>>()

  add(scope: Scope, run: Running): void {
    const known = this.#listening.get(scope)
    if (known) {
      known.add(run)
      return
    }
    const runs = new Set([run])
    this.#listening.set(scope, runs)
    scope.signal.addEventListener(
      'abort',
      () => {
        for (const one of runs) one.abort(scope.signal.reason)
      },
      { once: true },
    )
  }
  delete(scope: Scope, run: Running): void {
    this.#listening.get(scope)?.delete(run)
  }
}

/**
 * A request while the code of its plugin handles it. The scope waits for it until the code has ended and the answer is
 * sent.
 */
export class Running {
  #scope: Scope
  #signals: ScopeSignals
  #leave: (() => void) | undefined
  #controller: AbortController | undefined
  #unload: (() => void) | undefined
  #settled = false
  #closed: { readonly complete: boolean } | undefined

  /** A `feed` is registered with the scope instead, so that unloading does not wait for it. */
  constructor(exchange: Exchange, scope: Scope, signals: ScopeSignals, feed: boolean) {
    this.#scope = scope
    this.#signals = signals
    if (!feed) this.#leave = scope.enter()
    exchange.onClose((complete) => {
      this.#closed = { complete }
      if (!complete) this.abort(new DOMException('The client left', 'AbortError'))
      this.#end()
    })
  }

  /** Created lazily: most requests end before anybody needs it. */
  get signal(): AbortSignal {
    if (this.#controller) return this.#controller.signal
    this.#controller = new AbortController()
    if (this.#scope.signal.aborted) this.#controller.abort(this.#scope.signal.reason)
    else if (this.clientLeft) this.#controller.abort(new DOMException('The client left', 'AbortError'))
    else if (!this.#settled) this.#signals.add(this.#scope, this)
    return this.#controller.signal
  }

  get clientLeft(): boolean {
    return this.#closed?.complete === false
  }
  get unloading(): boolean {
    return this.#scope.signal.aborted
  }

  abort(reason: unknown): void {
    this.#controller?.abort(reason)
    if (this.unloading) this.#unload?.()
  }

  /** Called when the plugin unloads while this request runs. */
  onUnload(listener: () => void): void {
    this.#unload = listener
    // Creating the signal subscribes to the scope.
    if (this.signal.aborted && this.unloading) listener()
  }

  /** The code of the plugin has ended. */
  settle(): void {
    this.#settled = true
    this.#end()
  }

  #end(): void {
    if (!this.#settled || !this.#closed) return
    if (this.#controller) this.#signals.delete(this.#scope, this)
    this.#leave?.()
  }
}
