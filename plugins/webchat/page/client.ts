import { AgentChat } from './agent-chat.ts'
import { Api, ApiError, explain } from './api.ts'
import { PendingApprovals } from './approvals.ts'
import { MemoryUses } from './memories.tsx'
import { Observable } from './observable.ts'
import { forgetQueues } from './queue.ts'
import { forget, recall, remember } from './remembered.ts'
import { comeBack, listProviders } from './sign-in.ts'
import type { SignInProvider } from './sign-in.ts'
import type { AgentSummary, Canvas, PluginPage, SlashCommand, Status } from './wire.ts'

/** `key`: the daemon requires a key or a sign-in; `problem` when the given one was refused. */
export type Gate =
  | { readonly state: 'checking' | 'ready' }
  | { readonly state: 'key'; readonly problem: string | undefined; readonly providers: readonly SignInProvider[] }
  | { readonly state: 'unreachable'; readonly problem: string }

/** Everything the page holds: the gate, the agents, and a conversation with each one that was opened. */
export class Client {
  readonly gate = new Observable<Gate>({ state: 'checking' })
  readonly agents = new Observable<readonly AgentSummary[]>([])
  readonly selected = new Observable<AgentChat | undefined>(undefined)
  /** Agents that are answering a message of this page. */
  readonly answering = new Observable<ReadonlySet<string>>(new Set())
  /** Who is signed in; `undefined` with the key, and when none is needed. */
  readonly signedIn = new Observable<string | undefined>(undefined)
  /** Whether what opens the daemon is kept on this device. */
  readonly kept = new Observable(false)
  /** The daemon's health, as far as the page shows it. */
  readonly status = new Observable<Status | undefined>(undefined)
  /** The commands that can be typed into the message box. */
  readonly commands = new Observable<readonly SlashCommand[]>([])
  /** The pages that plugins bring. */
  readonly pages = new Observable<readonly PluginPage[]>([])
  /** `undefined` while no plugin remembers. */
  readonly memoryUses = new Observable<MemoryUses | undefined>(undefined)
  readonly approvals: PendingApprovals
  readonly api: Api
  /** The same function for every drawing of the page. */
  readonly readCanvas = (id: string): Promise<Canvas> => this.api.canvas(id)
  readonly readGuide = (agentId: string): Promise<string> => this.api.guide(agentId)
  #chats = new Map<string, AgentChat>()
  /** The ways to sign in are being loaded, to ask for a key. */
  #asking = false
  /** Why the way back from a sign-in ended here without one. */
  #returned: string | undefined

  constructor() {
    this.api = new Api(() => {
      void this.#askForKey()
    })
    this.approvals = new PendingApprovals(this.api, () => this.answering.value.size > 0)
    this.answering.watch(() => this.approvals.hurry())
  }

  async start(): Promise<void> {
    this.gate.set({ state: 'checking' })
    const returned = await comeBack()
    if (returned && 'token' in returned) {
      this.api.useKey(returned.token)
      this.signedIn.set(returned.name)
    } else {
      this.#returned = returned?.problem
      const known = this.api.hasKey ? undefined : recall()
      if (known) {
        this.api.useKey(known.key)
        this.kept.set(true)
      }
    }
    try {
      this.#take(await this.api.agents())
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401))
        this.gate.set({ state: 'unreachable', problem: explain(error) })
      return
    }
    this.gate.set({ state: 'ready' })
    this.selected.value?.show()
    this.approvals.start()
    await Promise.all([this.readStatus(), this.#readCommands(), this.readPages()])
  }
  /** Without an answer to these the page is of use all the same. */
  async readStatus(): Promise<void> {
    try {
      this.status.set(await this.api.status())
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }
  async readPages(): Promise<void> {
    try {
      const pages = await this.api.pages()
      this.pages.set(pages)
      const page = pages.find(({ plugin }) => plugin === 'memory')
      this.memoryUses.set(page && new MemoryUses(this.api, page.url))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }
  async #readCommands(): Promise<void> {
    try {
      this.commands.set(await this.api.commands())
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }

  /** `keep`: on this device, until the user signs out. Nothing is stored before the daemon accepted the key. */
  async enter(key: string, keep: boolean): Promise<void> {
    this.api.useKey(key)
    await this.start()
    if (keep && this.gate.value.state === 'ready') this.kept.set(remember({ key }))
  }

  /** Ends the sign-in at the daemon too, so that nothing is left of it that could be used. */
  async signOut(): Promise<void> {
    // First, or they would still send requests without a valid key.
    this.#close()
    const withKey = this.signedIn.value === undefined
    forget()
    forgetQueues()
    this.kept.set(false)
    try {
      if (!withKey) await this.api.signOut()
    } catch {
      /* It ended already, or the daemon is away: what this page knows of it goes all the same. */
    }
    this.#forget()
    await this.start()
  }

  select(agentId: string): void {
    if (this.selected.value?.agentId === agentId) return
    this.selected.value?.hide()
    const chat = this.#chats.get(agentId) ?? this.#openChat(agentId)
    this.selected.set(chat)
    // So that a reload comes back to the same agent. Nothing else is ever put there.
    history.replaceState(undefined, '', `#${agentId}`)
    if (this.gate.value.state === 'ready') chat.show()
  }

  /** Whether the daemon answers. Throws when it requires a key. */
  async refresh(): Promise<boolean> {
    try {
      this.#take(await this.api.agents())
      // The daemon may be another one than before.
      void this.readStatus()
      void this.readPages()
      return true
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) throw error
      return false
    }
  }

  async spawn(...agent: Parameters<Api['spawn']>): Promise<void> {
    const { agent_id: agentId } = await this.api.spawn(...agent)
    await this.refresh()
    this.select(agentId)
  }

  async kill(agentId: string): Promise<void> {
    await this.api.kill(agentId)
    this.#take(this.agents.value.filter(({ id }) => id !== agentId))
    await this.refresh()
  }

  #openChat(agentId: string): AgentChat {
    const chat = new AgentChat(agentId, this.api, {
      reachable: () => this.refresh(),
      onAgents: (agents) => this.#take(agents),
      onApproval: () => this.approvals.hurry(),
    })
    this.#chats.set(agentId, chat)
    // Both have the same life: the page holds the chat, and the chat its watchers.
    chat.transcript.watch(() => {
      if (chat.busy === this.answering.value.has(agentId)) return
      const answering = new Set(this.answering.value)
      if (chat.busy) answering.add(agentId)
      else answering.delete(agentId)
      this.answering.set(answering)
    })
    return chat
  }

  #take(agents: readonly AgentSummary[]): void {
    if (JSON.stringify(agents) !== JSON.stringify(this.agents.value)) this.agents.set(agents)
    for (const [id, chat] of this.#chats) {
      if (agents.some((agent) => agent.id === id)) continue
      chat.end()
      this.#chats.delete(id)
      if (this.selected.value === chat) this.selected.set(undefined)
    }
    if (this.selected.value) return
    const selected = agents.find(({ id }) => id === location.hash.slice(1)) ?? agents[0]
    if (selected) this.select(selected.id)
  }

  async #askForKey(): Promise<void> {
    // Requests on their way are refused as well, and add nothing to the first refusal.
    const known = this.#asking || this.gate.value.state === 'key'
    if (known && this.signedIn.value === undefined && !this.api.hasKey) return
    const problem =
      this.signedIn.value !== undefined
        ? 'Your sign-in has ended. Sign in again.'
        : this.api.hasKey
          ? 'That key was refused. Check it and try again.'
          : this.#returned
    this.#returned = undefined
    // What was kept is of no use any more.
    if (this.kept.value) forget()
    this.kept.set(false)
    this.#forget()
    this.#asking = true
    try {
      this.gate.set({ state: 'key', problem, providers: await listProviders() })
    } finally {
      this.#asking = false
    }
  }

  #forget(): void {
    this.api.useKey(undefined)
    this.signedIn.set(undefined)
    this.status.set(undefined)
    this.#close()
  }

  #close(): void {
    this.approvals.stop()
    for (const chat of this.#chats.values()) chat.close()
  }
}
