import type { ChannelLink, ChannelState, InboundMessage } from 'svc/channels'
import { Refusal } from 'svc/sdk'
import type { Logger, PluginNetwork, Spawn, Vault } from 'svc/sdk'
import type { Account } from '../accounts/account.ts'
import type { Clock } from 'svc/internal'
import { isNamed, namedHosts } from './named-hosts.ts'
import { programStarter } from './programs.ts'
import type { ConnectionStore } from './store.ts'

export interface LinkDeps {
  readonly store: ConnectionStore
  readonly vault: Pick<Vault, 'read' | 'write'>
  readonly clock: Clock
  readonly log: Logger
  /** The network as this account may use it. `operator`, for accounts of the file alone, reaches private addresses. */
  readonly networkOf: (account: Account) => AccountNetwork
  /** Who starts the programs of this account; `undefined` if it may have none. */
  readonly spawnOf: (account: Account) => Pick<Spawn, 'find' | 'start'> | undefined
}
export interface AccountNetwork {
  readonly network: PluginNetwork
  readonly operator?: PluginNetwork | undefined
}
/** What differs from one connection of an account to the next. */
export interface LinkSession {
  readonly config: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal
  readonly receive: (message: InboundMessage) => Promise<void>
  readonly heard: () => void
}

/** The host as an adapter sees it. */
export function createLink(
  deps: LinkDeps,
  account: Account,
  session: LinkSession,
): ChannelLink<Record<string, unknown>> {
  const { clock, log } = deps
  const { signal, receive, heard } = session
  const { network, operator } = deps.networkOf(account)
  const hosts = namedHosts(session.config)
  // A message or a server may name any other address: whoever wrote it must not reach what is private.
  const networkTo = (url: string | URL): PluginNetwork => (operator && isNamed(hosts, url) ? operator : network)
  const until = (own: AbortSignal | undefined): AbortSignal => (own ? AbortSignal.any([own, signal]) : signal)
  return {
    accountId: account.id,
    config: { ...session.config },
    signal,
    async fetch(url, request) {
      // A public server may redirect to a private address, so what is public goes the guarded way.
      const way = networkTo(url) === operator && !(await isRefused(network, url)) ? network : networkTo(url)
      return way.fetch(url, { ...request, signal: until(request?.signal) })
    },
    connect: (options) => (operator ?? network).connect({ ...options, signal: until(options.signal) }),
    startTls: (connection, tls) => (operator ?? network).startTls(connection, tls),
    webSocket: (url, options) => networkTo(url).webSocket(url, { ...options, signal: until(options?.signal) }),
    startProgram: programStarter(deps.spawnOf(account), signal),
    state: stateOf(deps, account),
    secrets: secretsOf(deps, account),
    log,
    now: () => clock.now(),
    sleep: (ms) => sleep(clock, ms, signal),
    receive,
    heard,
  }
}

async function isRefused({ admit }: Pick<PluginNetwork, 'admit'>, url: string | URL): Promise<boolean> {
  try {
    await admit(url)
    return false
  } catch (error) {
    // Whatever else fails, such as the name, fails in the request as well.
    return error instanceof Refusal
  }
}

const stateOf = ({ store }: LinkDeps, { channel, id }: Account): ChannelState => ({
  read: (key) => store.readState(channel, id, key),
  write: (key, value) => store.writeState(channel, id, key, value),
})
const secretsOf = ({ vault }: LinkDeps, { channel, id }: Account): ChannelState => ({
  read: (key) => vault.read(`${loginPrefix(channel, id)}${key}`),
  write: (key, value) => vault.write(`${loginPrefix(channel, id)}${key}`, value),
})
/** Vault names of what an adapter obtained itself. */
export const loginPrefix = (channel: string, id: string): string => `login/${channel}/${id}/`

/** Settles after a time; rejects with the reason of the signal when that aborts first. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(signal.reason)
    }
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', stop)
      resolve()
    })
    signal.addEventListener('abort', stop, { once: true })
  })
}
