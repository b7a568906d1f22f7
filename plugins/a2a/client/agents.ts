import { findNearest, stableId, suggest } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { commandLine, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch, Logger, Statement } from 'svc/sdk'
import { v7 } from 'uuid'
import type { Audit } from '../../audit/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import { cardAddresses, isSecureUrl, normalizeUrl } from './address.ts'
import { readCard } from './card/read.ts'
import { differences, fingerprintOf, viewCard } from './card/view.ts'
import type { ClientSettings, ConfiguredAgent } from './config.ts'
import { a2aUnreachable } from './errors.ts'
import type { CardView, ExternalAgent } from './model.ts'
import type { AgentStore } from './store.ts'

export interface ExternalAgentsDeps {
  readonly store: AgentStore
  readonly audit: Pick<Audit, 'entry'>
  readonly settings: ClientSettings
  /** To public addresses, and to those that the file permits. */
  readonly fetch: Fetch
  /** For agents of the configuration file. */
  readonly operatorFetch: Fetch
  readonly screening: Screening
  readonly clock: Clock
  readonly log: Logger
  readonly changed: (agent: ExternalAgent, what: AgentChange) => void
}
export type AgentChange = 'discovered' | 'trusted' | 'changed' | 'removed'

/** On whose behalf an agent is looked for. */
export interface Discoverer {
  /** The agent here that asked; undefined for a person. */
  readonly agentId?: string
  /** Throws for an address that it may not reach. */
  readonly check?: (url: URL) => void
  readonly signal?: AbortSignal
}
interface LoadedCard {
  readonly card: unknown
  readonly view: CardView
  readonly fingerprint: string
}

/** Agents elsewhere: found by a person or an agent, trusted by a person or by the configuration file. */
export class ExternalAgents {
  readonly #deps: ExternalAgentsDeps
  constructor(deps: ExternalAgentsDeps) {
    this.#deps = deps
  }

  list(): Promise<readonly ExternalAgent[]> {
    return this.#deps.store.list()
  }
  /** By id, name or address. */
  async find(text: string): Promise<ExternalAgent | undefined> {
    const { store } = this.#deps
    // A card may call itself what it likes, also by the address of another agent.
    if (!/^https?:/i.test(text.trim())) return (await store.find(text)) ?? (await store.findByName(text))
    if (!isSecureUrl(text.trim())) return undefined
    const url = normalizeUrl(text)
    return (
      (await store.findByUrl(url)) ??
      (await store.list()).find(({ view }) => view?.endpoints.some((each) => each.url.replace(/\/+$/, '') === url))
    )
  }
  /** Throws `a2a_agent_not_found`. */
  async require(text: string): Promise<ExternalAgent> {
    const found = await this.find(text)
    if (found) return found
    const names = (await this.#deps.store.list()).map(({ name }) => name)
    throw new Refusal(
      'a2a_agent_not_found',
      `No agent elsewhere is known as ${JSON.stringify(text.slice(0, 100))}` +
        `${suggest(findNearest(text, names))}: discover it by its address first`,
    )
  }
  credentialOf(agent: ExternalAgent): ConfiguredAgent['auth'] {
    return this.#deps.settings.external_agents.find(({ name }) => agent.source === 'file' && name === agent.name)?.auth
  }
  fetchFor(agent: Pick<ExternalAgent, 'source'>): Fetch {
    return agent.source === 'file' ? this.#deps.operatorFetch : this.#deps.fetch
  }

  /** Makes the rows of the agents of the file, and removes those that are not in it any more. */
  async syncConfigured(): Promise<void> {
    const { store, settings, clock, log } = this.#deps
    const known = await store.list()
    const named = new Map(settings.external_agents.map((each) => [each.name, each]))
    const statements: Statement[] = known
      .filter(({ source, name }) => source === 'file' && !named.has(name))
      .map(({ id }) => store.remove(id))
    for (const { name, url: text } of settings.external_agents) {
      const url = normalizeUrl(text)
      const same = known.find((each) => each.source === 'file' && each.name === name)
      if (same?.url === url) continue
      for (const other of known.filter((each) => each.id !== same?.id && (each.name === name || each.url === url))) {
        log.warn(`the agent "${name}" of the configuration replaces one that was discovered`, { id: other.id })
        statements.push(store.remove(other.id))
      }
      const now = clock.now()
      statements.push(
        store.put({ ...empty(stableId('a2a-agent', name), name, url, now), source: 'file', state: 'trusted' }),
      )
    }
    if (statements.length > 0) await store.commit(statements)
  }

  /**
   * Reads the card at an address, and remembers the agent until a person trusts it. One that is known is read again: it
   * stays trusted only while its card is the same.
   */
  async discover(given: { readonly url: string; readonly name?: string }, by: Discoverer = {}): Promise<ExternalAgent> {
    const { store } = this.#deps
    const url = normalizeUrl(given.url)
    const known = (await store.findByUrl(url)) ?? (await this.find(url))
    if (known) return this.refresh(known, by)
    await this.#admit()
    const loaded = await this.#load({ url, source: 'api' }, by)
    const name = given.name ?? loaded.view.name
    await this.#checkName(name)
    const now = this.#deps.clock.now()
    const agent: ExternalAgent = {
      ...empty(v7(), name, url, now),
      ...loaded,
      discovered_by: by.agentId ?? null,
      checked_at: now,
    }
    await this.#put(agent, 'discovered', `A2A agent ${quoted(agent)} discovered; it waits for a person`, by)
    return agent
  }

  /** Reads its card again. One that is no longer what was trusted waits for a person once more. */
  async refresh(agent: ExternalAgent, by: Discoverer = {}): Promise<ExternalAgent> {
    const { store, clock } = this.#deps
    const loaded = await this.#load(agent, by)
    const next: ExternalAgent = { ...agent, ...loaded, checked_at: clock.now() }
    if (agent.fingerprint === loaded.fingerprint || (agent.source === 'file' && agent.fingerprint === null)) {
      await store.commit([store.put(next)])
      return next
    }
    if (agent.source === 'file') {
      await this.#put(
        next,
        'changed',
        `the card of A2A agent ${quoted(agent)} changed; the file trusts its address`,
        by,
      )
      return next
    }
    const pending: ExternalAgent = { ...next, state: 'pending', trusted_at: null }
    const fields = agent.trusted_view ? differences(agent.trusted_view, loaded.view).map(({ field }) => field) : []
    const what = `the card of A2A agent ${quoted(agent)} changed (${fields.join(', ') || 'while it waited'})`
    await this.#put(pending, 'changed', `${what}; it waits for a person`, by)
    return pending
  }

  /** The agent with a card that is not older than the configuration allows. Throws unless it is trusted. */
  async requireTrusted(text: string, by: Discoverer = {}): Promise<ExternalAgent> {
    const found = await this.require(text)
    const { settings, clock } = this.#deps
    const isFresh = found.card !== null && clock.now() - (found.checked_at ?? 0) < settings.card_refresh_secs * 1_000
    const agent = found.state === 'trusted' && !isFresh ? await this.#refreshed(found, by) : found
    if (agent.state === 'trusted') return agent
    throw new Refusal(
      'conflict',
      `A person has to trust "${agent.name}" before anything is sent to it: ${commandLine(`a2a approve ${agent.id}`)}, or the page "A2A agents".`,
    )
  }
  /** A card that cannot be read for a while changes nothing about one that is trusted. */
  async #refreshed(agent: ExternalAgent, by: Discoverer): Promise<ExternalAgent> {
    try {
      return await this.refresh(agent, by)
    } catch (error) {
      if (agent.card === null || !(error instanceof Refusal) || error.definition !== a2aUnreachable) throw error
      return agent
    }
  }

  /** A person trusts the card, of which `fingerprint` says which one was shown. */
  async approve(text: string, fingerprint: string | undefined): Promise<ExternalAgent> {
    const agent = await this.require(text)
    if (agent.state === 'trusted') return agent
    if (fingerprint !== undefined && fingerprint !== agent.fingerprint)
      throw new Refusal('conflict', 'The card is not the one that you were shown: look at it again.')
    if (agent.view?.signature.state === 'invalid')
      throw new Refusal('conflict', 'The signature of its card is wrong, so it is not what its maker signed.')
    const trusted: ExternalAgent = {
      ...agent,
      state: 'trusted',
      trusted_view: agent.view,
      trusted_at: this.#deps.clock.now(),
    }
    await this.#put(trusted, 'trusted', `A2A agent ${quoted(agent)} is trusted`, {})
    return trusted
  }
  async remove(text: string): Promise<ExternalAgent> {
    const { store, audit, changed } = this.#deps
    const agent = await this.require(text)
    if (agent.source === 'file')
      throw new Refusal('conflict', `"${agent.name}" stands in the configuration file: remove it there.`)
    await store.commit([
      store.remove(agent.id),
      audit.entry({ event: 'a2a_agent_changed', details: `A2A agent ${quoted(agent)} removed` }),
    ])
    changed(agent, 'removed')
    return agent
  }

  /** For the batch that stores a secret for it. */
  credentialEntry(agent: ExternalAgent): Statement {
    return this.#deps.audit.entry({
      event: 'a2a_agent_changed',
      details: `a secret was stored for A2A agent ${quoted(agent)}`,
    })
  }

  /** A name that reads like that of another agent would get messages that are meant for the other one. */
  async #checkName(name: string): Promise<void> {
    const { store, screening } = this.#deps
    const fold = async (text: string): Promise<string> => (await screening.fold(text)).replaceAll(/\s+/g, '')
    const folded = await fold(name)
    for (const other of await store.list()) {
      if (other.name !== name && (await fold(other.name)) !== folded) continue
      throw new Refusal(
        'conflict',
        `There is an agent "${other.name}" at ${other.url}${other.name === name ? '' : ', whose name looks the same'}. ` +
          'Send another "name" for this one.',
      )
    }
  }
  async #admit(): Promise<void> {
    const { store, settings } = this.#deps
    if ((await store.count('pending')) >= settings.max_pending_agents)
      throw new Refusal(
        'rate_limit',
        `${settings.max_pending_agents} agents wait for a person already (a2a.max_pending_agents): trust or remove some`,
      )
    if ((await store.count()) >= settings.max_external_agents)
      throw new Refusal(
        'rate_limit',
        `a2a.max_external_agents (${settings.max_external_agents}) agents are known already`,
      )
  }

  async #insert(agent: ExternalAgent, entries: readonly Statement[]): Promise<void> {
    const { store, settings } = this.#deps
    const room = store.requireRoom(agent.id, settings.max_external_agents, settings.max_pending_agents)
    try {
      await store.commit([store.put(agent), room, ...entries])
    } catch (error) {
      // Another daemon may have taken the last place.
      await this.#admit()
      throw error
    }
  }
  async #put(agent: ExternalAgent, what: AgentChange, details: string, { agentId }: Discoverer): Promise<void> {
    const { store, audit, changed } = this.#deps
    const entries = [audit.entry({ event: 'a2a_agent_changed', details, ...(agentId !== undefined && { agentId }) })]
    const suspicion = agent.view?.warnings.find((each) => each.includes('looks like instructions'))
    if (suspicion !== undefined && what !== 'trusted')
      entries.push(audit.entry({ event: 'injection_suspected', details: `the card at ${agent.url}: ${suspicion}` }))
    if (what === 'discovered') await this.#insert(agent, entries)
    else await store.commit([store.put(agent), ...entries])
    changed(agent, what)
  }

  async #load(agent: Pick<ExternalAgent, 'url' | 'source'>, { check, signal }: Discoverer): Promise<LoadedCard> {
    const { settings, screening } = this.#deps
    const base = this.fetchFor(agent)
    const fetch: Fetch = (url, request) => base(url, { ...request, ...(check && { check }) })
    for (const address of cardAddresses(agent.url)) check?.(new URL(address))
    const { host, origin } = new URL(agent.url)
    try {
      const raw = await readCard(agent.url, { fetch, settings, signal })
      const { normalizeCard } = await import('./card/normalize.ts')
      const { checkSignature } = await import('./card/signature.ts')
      const signature = await checkSignature(raw, { fetch, settings })
      const card = normalizeCard(raw, host)
      const limits = { host, limits: settings, screening }
      const view = await viewCard(card, signature, limits)
      if (agent.source === 'file') requireOwnOrigin(view, origin)
      return { card, view, fingerprint: fingerprintOf(view) }
    } catch (error) {
      if (error instanceof UpstreamFailure) throw new Refusal(a2aUnreachable, error.message, { cause: error })
      throw error
    }
  }
}

/** The file trusts an address, and its credential is for that address only. */
function requireOwnOrigin(view: CardView, origin: string): void {
  const foreign = view.endpoints.find(({ url }) => new URL(url).origin !== origin)
  if (!foreign) return
  throw new Refusal(
    a2aUnreachable,
    `the card at ${origin} sends messages to ${new URL(foreign.url).origin}, which the configuration does not name`,
  )
}
const quoted = ({ name, url }: ExternalAgent): string => `"${name}" at ${url}`

function empty(id: string, name: string, url: string, now: number): ExternalAgent {
  return {
    id,
    name,
    url,
    source: 'api',
    state: 'pending',
    card: null,
    view: null,
    trusted_view: null,
    fingerprint: null,
    discovered_by: null,
    discovered_at: now,
    checked_at: null,
    trusted_at: null,
  }
}
