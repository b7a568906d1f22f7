import type { Daemon } from './daemon.ts'

const CHECK_MS = 50

/**
 * Settles when no other plugin is loading, or the signal aborts: work that goes on after a start may need any of them.
 */
export async function pluginsLoaded(daemon: Pick<Daemon, 'plugins'>, self: string, until: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setInterval(() => {
    if (!daemon.plugins().some(({ name, state }) => state === 'loading' && name !== self)) resolve()
  }, CHECK_MS).unref()
  const leave = (): void => resolve()
  until.addEventListener('abort', leave, { once: true })
  if (until.aborted) leave()
  try {
    await promise
  } finally {
    clearInterval(timer)
    until.removeEventListener('abort', leave)
  }
}
