import type { ChannelAdapter, ChannelLink } from 'svc/channels'
import type { Account } from '../accounts/account.ts'
import { readConfig } from '../accounts/adapter-config.ts'
import { createLink } from './link.ts'
import type { LinkDeps } from './link.ts'

/** Runs a short call of an adapter outside of a connection, such as a check of its credentials. */
export async function withLink<T>(
  deps: LinkDeps,
  account: Account,
  adapter: ChannelAdapter,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number },
  work: (link: ChannelLink<Record<string, unknown>>) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { channel } = account
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = (reason: Error): void => {
    controller.abort(reason)
    reject(reason)
  }
  const cancel = deps.clock.after(options.timeoutMs, () =>
    stop(new Error(`${channel} did not answer within ${options.timeoutMs / 1000} seconds`)),
  )
  const leave = (): void => stop(new Error('stopped'))
  options.signal.addEventListener('abort', leave, { once: true })
  try {
    const link = createLink(deps, account, {
      config: readConfig(adapter, account),
      signal: controller.signal,
      heard: () => undefined,
      receive: () => Promise.reject(new Error('there is no connection: the message is not accepted')),
    })
    return await Promise.race([work(link), promise])
  } finally {
    cancel()
    options.signal.removeEventListener('abort', leave)
    controller.abort(new Error('the call has ended'))
  }
}
