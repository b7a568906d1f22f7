import { omitUndefined, shortened, UpstreamFailure } from 'svc/sdk'
import type { ChannelLink, ConnectionEnd } from './channel.ts'

/** What runs for as long as a connection is open. */
export interface Background extends AsyncDisposable {
  /** Aborts when the connection is disposed of or the link ends. */
  readonly signal: AbortSignal
  readonly closed: Promise<ConnectionEnd>
}

/**
 * Runs the receiving side of a connection. When `run` settles or throws, the connection is lost, and `closed` tells
 * why; disposing aborts its signal and waits for it.
 */
export function runInBackground(
  link: Pick<ChannelLink<unknown>, 'signal'>,
  run: (signal: AbortSignal) => Promise<ConnectionEnd | void>,
): Background {
  const controller = new AbortController()
  const signal = AbortSignal.any([link.signal, controller.signal])
  const closed = settle(signal, run)
  return {
    signal,
    closed,
    async [Symbol.asyncDispose]() {
      controller.abort()
      await closed
    },
  }
}

/** From one long poll to the next when nothing came: a server may answer at once, again and again. */
const EMPTY_POLL_MS = 1000

/**
 * Repeats one poll until the connection ends. A poll that throws is a lost connection: the host opens the next one.
 * A long poll tells with `false` that nothing came: then the next one begins a second after it at the earliest.
 */
export function pollInBackground(
  link: Pick<ChannelLink<unknown>, 'signal' | 'heard' | 'sleep'>,
  poll: (signal: AbortSignal) => Promise<boolean | void>,
): Background {
  return runInBackground(link, async (signal) => {
    while (!signal.aborted) {
      const startMs = performance.now()
      const hasEvents = await poll(signal)
      link.heard()
      const leftMs = EMPTY_POLL_MS - (performance.now() - startMs)
      if (hasEvents === false && leftMs > 0) await pause(link, leftMs, signal)
    }
  })
}

/** A connection without a receiving side of its own: the platform calls the webhook. */
export function waitForEnd(link: Pick<ChannelLink<unknown>, 'signal'>): Background {
  return runInBackground(link, (signal) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
    return promise
  })
}

/** Waits. Settles with `false`, at once, when the signal aborts or the link ends. */
export async function pause(
  link: Pick<ChannelLink<unknown>, 'sleep'>,
  ms: number,
  signal: AbortSignal,
): Promise<boolean> {
  if (signal.aborted) return false
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const stop = (): void => resolve(false)
  signal.addEventListener('abort', stop, { once: true })
  link.sleep(ms).then(() => resolve(true), stop)
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/**
 * How a connection ended that failed with this error. It was open, so the configuration is right: only credentials that
 * are refused by now need a person. What one message led to must not end the account.
 */
export function endOf(error: unknown): ConnectionEnd {
  if (error instanceof UpstreamFailure) {
    const retry = error.reason === 'auth' ? error.retry : 'later'
    return omitUndefined({ retry, reason: error.message, retryAfterSecs: error.retryAfterSecs })
  }
  return { retry: 'later', reason: shortened(error instanceof Error ? error.message : String(error)) }
}

async function settle(
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<ConnectionEnd | void>,
): Promise<ConnectionEnd> {
  const ended: ConnectionEnd = { retry: 'later', reason: 'the connection ended' }
  try {
    return (await run(signal)) ?? ended
  } catch (error) {
    return signal.aborted ? ended : endOf(error)
  }
}
