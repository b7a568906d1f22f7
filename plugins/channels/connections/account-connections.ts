import { isDeepStrictEqual } from 'node:util'
import type { ChannelAdapter, ChannelDeclaration, InboundMessage } from 'svc/channels'
import { findNearest, suggest } from 'svc/internal'
import { commandLine, Refusal, SerialQueue } from 'svc/sdk'
import { accountKey } from '../accounts/account.ts'
import type { Account } from '../accounts/account.ts'
import type { AccountEntry, Accounts } from '../accounts/service.ts'
import { retirementOf } from '../names.ts'
import type { Connections, OpenConnection } from './connections.ts'
import { AccountLease } from './lease.ts'
import type { LinkDeps } from './link.ts'
import type { AdapterRegistry } from './registry.ts'
import { initialStatus } from './status.ts'
import type { AccountState, ConnectionStatus } from './status.ts'
import { AccountSupervisor } from './supervisor.ts'
import type { SupervisorSettings } from './supervisor.ts'

export interface AccountConnectionsDeps extends LinkDeps {
  readonly accounts: Pick<Accounts, 'list' | 'resolve'>
  readonly registry: AdapterRegistry
  readonly settings: SupervisorSettings
  readonly random: () => number
  /** The same for every process on one home. */
  readonly leaseHolder: string
  /** Accounts were let go, for other daemons. */
  readonly released: () => void
  readonly receive: (account: Account, adapter: ChannelAdapter, message: InboundMessage) => Promise<void>
  /** For hooks, the audit log and metrics. */
  readonly observe: (account: Account, event: 'connected' | 'disconnected' | 'ended', reason: string) => void
}
interface Entry {
  readonly account: Account
  readonly declaration: ChannelDeclaration
  readonly supervisor: AccountSupervisor
}

/** Runs a supervisor for each enabled account that has an adapter. */
export class AccountConnections implements Connections {
  readonly #deps: AccountConnectionsDeps
  readonly #running = new Map<string, Entry>()
  readonly #listeners = new Set<(channel: string, accountId: string) => void>()
  readonly #queue = new SerialQueue()
  #isDrained = false
  /** Names in the file without a channel that were told. */
  readonly #unknown = new Set<string>()
  #state: 'waiting' | 'started' | 'closed' = 'waiting'
  constructor(deps: AccountConnectionsDeps) {
    this.#deps = deps
  }

  find(channel: string, accountId: string): OpenConnection | undefined {
    return this.#running.get(accountKey(channel, accountId))?.supervisor.open
  }
  /** What the adapter of an open connection warns of. */
  warnings({ channel, id }: AccountEntry): readonly string[] {
    return this.#running.get(accountKey(channel, id))?.supervisor.warnings() ?? []
  }
  onChange(listener: (channel: string, accountId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
  /** How many supervised accounts are in which state, by channel. */
  counts(): readonly { readonly channel: string; readonly state: AccountState; readonly count: number }[] {
    const counts = new Map<string, { channel: string; state: AccountState; count: number }>()
    for (const { account, supervisor } of this.#running.values()) {
      const { state } = supervisor.status
      const entry = counts.get(`${account.channel} ${state}`) ?? { channel: account.channel, state, count: 0 }
      entry.count++
      counts.set(`${account.channel} ${state}`, entry)
    }
    return [...counts.values()]
  }

  status(entry: AccountEntry): ConnectionStatus {
    const running = this.#running.get(accountKey(entry.channel, entry.id))
    if (running) return running.supervisor.status
    if (!entry.enabled) return initialStatus('disabled')
    if (this.#isDrained) return initialStatus('standby', 'this daemon drains')
    if (entry.problem !== undefined) return initialStatus('misconfigured', entry.problem)
    const retirement = retirementOf(entry.channel)
    if (retirement !== undefined) return initialStatus('retired', retirement)
    if (!this.#deps.registry.find(entry.channel))
      return initialStatus('error', `there is no adapter for ${entry.channel}; accounts connect once it is installed`)
    return initialStatus('connecting')
  }

  /** Connects from now on. Called once the daemon listens. */
  begin(): Promise<readonly string[]> {
    this.#started()
    return this.sync()
  }
  #started(): void {
    if (this.#state === 'waiting') this.#state = 'started'
  }
  /** Starts and stops what the configuration and the adapters ask for. Returns the names of the channels it started. */
  sync(): Promise<readonly string[]> {
    return this.#queue.run(() => this.#sync())
  }
  /** Lets every account go, for another daemon, or takes those that are free. */
  async drain(isDrained: boolean): Promise<void> {
    if (isDrained === this.#isDrained) return
    this.#isDrained = isDrained
    await this.sync()
    if (isDrained) this.#deps.released()
  }
  /** Another daemon has let accounts go. */
  retry(): void {
    for (const { supervisor } of this.#running.values()) supervisor.retry()
  }
  /** Settles when each account has connected once, has failed to, or was stopped. */
  async attempted(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ supervisor }) => supervisor.attempted))
  }
  /** The same for one account, once what is being changed has taken effect. */
  async accountAttempted(channel: string, id: string): Promise<void> {
    await this.#queue.idle()
    await this.#running.get(accountKey(channel, id))?.supervisor.attempted
  }
  /** Connects every account anew. Returns the names of their channels. */
  restart(): Promise<readonly string[]> {
    return this.#queue.run(async () => {
      this.#started()
      await this.#stop([...this.#running.keys()], 'reloaded')
      return this.#sync()
    })
  }
  /** Connects one account anew, with its present configuration. */
  restartAccount(channel: string, id: string): Promise<readonly string[]> {
    return this.#queue.run(async () => {
      this.#started()
      await this.#stop([accountKey(channel, id)], 'changed')
      return this.#sync()
    })
  }
  /** Settles when everything has ended, or could not be ended in time. */
  async close(reason: string): Promise<void> {
    this.#state = 'closed'
    await this.#queue.run(() => this.#stop([...this.#running.keys()], reason))
    this.#deps.released()
  }

  async #sync(): Promise<readonly string[]> {
    if (this.#state !== 'started') return []
    const { accounts, registry } = this.#deps
    const all = this.#isDrained ? [] : await accounts.list()
    const entries = all.filter(({ enabled, problem }) => enabled && problem === undefined)
    const wanted = new Map<string, { readonly account: Account; readonly declaration: ChannelDeclaration }>()
    for (const { channel } of entries) this.#checkName(channel)
    for (const entry of entries) {
      const declaration = registry.find(entry.channel)
      const account = declaration && (await this.#resolve(entry))
      if (account) wanted.set(accountKey(entry.channel, entry.id), { account, declaration })
    }
    const obsolete = [...this.#running].filter(([key, { account, declaration }]) => {
      const next = wanted.get(key)
      return next?.declaration !== declaration || !isDeepStrictEqual(next.account, account)
    })
    await this.#stop(
      obsolete.map(([key]) => key),
      'changed',
    )
    const started = [...wanted].filter(([key]) => !this.#running.has(key))
    for (const [key, { account, declaration }] of started) this.#start(key, account, declaration)
    return [...new Set(started.map(([, { account }]) => account.channel))]
  }

  /** A section of the file for a channel that nobody knows is told once. */
  #checkName(channel: string): void {
    const { registry, log } = this.#deps
    if (this.#unknown.has(channel) || registry.find(channel) || retirementOf(channel) !== undefined) return
    this.#unknown.add(channel)
    const names = registry.list().map(({ name }) => name)
    const hint = suggest(findNearest(channel, names)) || `: ${commandLine('channels list --all')} has those there are`
    log.warn(`config.toml has [channels.${channel}], and there is no channel of this name${hint}`)
  }

  /** `undefined` when its secrets were entered for another configuration, which is told and stops no other account. */
  async #resolve(entry: AccountEntry): Promise<Account | undefined> {
    try {
      return await this.#deps.accounts.resolve(entry)
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'conflict')) throw error
      this.#deps.log.error(error.message)
      return undefined
    }
  }

  #start(key: string, account: Account, declaration: ChannelDeclaration): void {
    const { registry, store, clock, leaseHolder: holder, settings, observe } = this.#deps
    const lease = new AccountLease(
      { store, clock, holder, leaseMs: settings.lease_secs * 1000 },
      account.channel,
      account.id,
    )
    const supervisor = new AccountSupervisor({
      ...this.#deps,
      account,
      lease,
      load: () => registry.load(account.channel),
      called: (failure) => registry.countCall(account.channel, failure),
      changed: (event, reason) => {
        observe(account, event, reason)
        if (event !== 'ended') for (const listener of this.#listeners) listener(account.channel, account.id)
      },
    })
    this.#running.set(key, { account, declaration, supervisor })
    supervisor.start()
  }

  async #stop(keys: readonly string[], reason: string): Promise<void> {
    const stopping = keys.flatMap((key) => this.#running.get(key)?.supervisor ?? [])
    for (const key of keys) this.#running.delete(key)
    await Promise.all(stopping.map((supervisor) => supervisor.stop(reason)))
  }
}
