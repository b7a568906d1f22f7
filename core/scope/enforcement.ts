import { AsyncLocalStorage } from 'node:async_hooks'
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'

const name = 'svc:enforced'
const enforcements = channel(name)
const rehearsing = new AsyncLocalStorage<true>()

/**
 * Reports that a security system refused or changed something, so that operators see it work. Free when nobody
 * subscribes.
 */
export function enforced(system: string): void {
  if (enforcements.hasSubscribers && rehearsing.getStore() !== true) enforcements.publish(system)
}

/** Runs a probe: what it triggers does not count as enforcement. */
export function rehearse<T>(work: () => T): T {
  return rehearsing.run(true, work)
}

/** Calls with the system's name at every enforcement in this process, until the returned function is called. */
export function onEnforced(listener: (system: string) => void): () => void {
  const onMessage = (message: unknown): void => {
    if (typeof message === 'string') listener(message)
  }
  subscribe(name, onMessage)
  return () => {
    unsubscribe(name, onMessage)
  }
}
