import { AgentChat } from './agent-chat.ts'
import { Api, ApiError, explain } from './api.ts'
import { PendingApprovals } from './approvals.ts'
import { forget, forgetAll, keep, recall, recallDevice, remember } from './credential.ts'
import type { Credential, DeviceCredential } from './credential.ts'
import { Deletions } from './deletions.ts'
import { canPair, pairBrowser } from './device.ts'
import { MemoryUses } from './memories.tsx'
import { Observable } from './observable.ts'
import { Pins } from './pins.ts'
import { comeBack, listProviders } from './sign-in.ts'
import type { SignInProvider } from './sign-in.ts'
import type { AgentSummary, Canvas, PluginPage, SlashCommand, Status } from './wire.ts'

/** The daemon requires a key or a sign-in. */
export interface KeyGate {
  readonly state: 'key'
  /** Why the given one was refused. */
  readonly problem: string | undefined
  readonly providers: readonly SignInProvider[]
  /** Whether this browser can be remembered. */
  readonly canPair: boolean
}
export type Gate =
  | { readonly state: 'checking' | 'ready' }
  | KeyGate
  | { readonly state: 'unreachable'; readonly problem: string }
/** The API key is needed for something that the device must not do. */
export interface OwnerKeyRequest {
  /** What the daemon said. */
  readonly message: string
  readonly cancel: () => void
  /** Throws what the daemon says to the key. */
  readonly enter: (key: string) => Promise<void>
}

/** Everything the page holds: the gate, the agents, and a conversation with each one that was opened. */
export class Client {
  readonly gate = new Observable<Gate>({ state: 'checking' })
  readonly agents = new Observable<readonly AgentSummary[]>([])
  readonly selected = new Observable<AgentChat | undefined>(undefined)
  /** Agents that are answering a message of this page. */
  readonly answering = new Observable<ReadonlySet<string>>(new Set())
  /** What this page sends; `undefined` when the daemon needs none. */
  readonly credential = new Observable<Credential | undefined>(undefined)
  /** Why this browser is not remembered, although that was asked for. */
  readonly notRemembered = new Observable<string | undefined>(undefined)
  readonly ownerKeyRequest = new Observable<OwnerKeyRequest | undefined>(undefined)
  /** The daemon's health, as far as the page shows it. */
  readonly status = new Observable<Status | undefined>(undefined)
  /** The commands that can be typed into the message box. */
  readonly commands = new Observable<readonly SlashCommand[]>([])
  /** The pages that plugins bring. */
  readonly pages = new Observable<readonly PluginPage[]>([])
  /** `undefined` while no plugin remembers. */
  readonly memoryUses = new Observable<MemoryUses | undefined>(undefined)
  readonly approvals: PendingApprovals
  readonly pins = new Pins()
  readonly deletions: Deletions
  readonly api: Api
  /** The same function for every drawing of the page. */
  readonly readCanvas = (id: string): Promise<Canvas> => this.api.canvas(id)
  readonly readFile = (fileId: string): Promise<Blob> => this.api.uploaded(fileId)
  readonly readGuide = (agentId: string): Promise<string> => this.api.guide(agentId)
  #chats = new Map<string, AgentChat>()
  /** The ways to sign in are being loaded, to ask for a key. */
  #asking = false
  /** Why the way back from a sign-in ended here without one. */
  #returned: string | undefined
  /** Requests that are refused at the same time ask once. */
  #ownerKey: Promise<boolean> | undefined

  constructor() {
    this.api = new Api({
      onRefused: () => void this.#askForKey(),
      onForbidden: (message) => this.#askForOwnerKey(message),
    })
    this.deletions = new Deletions(this.api)
    this.approvals = new PendingApprovals(this.api, () => this.answering.value.size > 0)
    this.answering.watch(() => this.approvals.hurry())
  }

  async start(): Promise<void> {
    this.gate.set({ state: 'checking' })
    const returned = await comeBack()
    if (returned && 'token' in returned) {
      const credential = { key: returned.token, name: returned.name }
      keep(credential)
      this.#use(credential)
    } else {
      this.#returned ??= returned?.problem
      if (!this.credential.value) this.#use(recall())
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

  /** `isRemembered`: this browser becomes a device. Nothing is stored before the daemon accepted the key. */
  async enter(key: string, isRemembered: boolean): Promise<void> {
    this.#use({ key })
    await this.start()
    if (this.gate.value.state !== 'ready') return
    keep({ key })
    if (isRemembered) await this.#remember()
  }

  /** The tab goes on with the key; the device is for the next one. */
  async #remember(): Promise<void> {
    try {
      const device = await pairBrowser(this.api)
      if (remember(device)) return
      await this.api.removeDevice(device.device)
      this.notRemembered.set('This browser is not remembered: it stores nothing for this page.')
    } catch (error) {
      this.notRemembered.set(`This browser is not remembered. ${explain(error)}`)
    }
  }

  /** Ends the sign-in and the device at the daemon too, so that nothing is left of them that could be used. */
  async signOut(): Promise<void> {
    await this.deletions.send()
    // First, or they would still send requests without a valid key.
    this.#close()
    const device = recallDevice()
    forgetAll()
    this.pins.forget()
    if (this.credential.value?.name !== undefined) this.#returned = await endSignIn(this.api)
    if (device) this.#returned = (await removeDevice(device)) ?? this.#returned
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

  /** Opens one conversation of an agent, at a message if one is given. Throws what the daemon refused. */
  async openSession(agentId: string, sessionId: string, messageId?: string): Promise<void> {
    this.select(agentId)
    const chat = this.selected.value
    await chat?.open(sessionId)
    if (messageId !== undefined) await chat?.reveal(messageId)
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

  async duplicate(agentId: string, name: string): Promise<void> {
    const copy = await this.api.duplicate(agentId, name)
    await this.refresh()
    this.select(copy.agent_id)
  }
  /** Throws what the daemon refused. */
  async move(agentId: string, command: 'suspend' | 'resume'): Promise<void> {
    await this.api.move(agentId, command)
    await this.refresh()
  }
  /** Throws what the daemon refused. */
  async setModel(agentId: string, provider: string, model: string): Promise<void> {
    await this.api.setModel(agentId, provider, model)
    await this.refresh()
  }
  /** Throws what the daemon refused. */
  async useByDefault(provider: string, model: string): Promise<void> {
    await this.api.useByDefault(provider, model)
    await this.refresh()
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
    const credential = this.credential.value
    if (known && !credential) return
    const problem = credential ? refusalOf(credential) : this.#returned
    this.#returned = undefined
    // What was kept is of no use any more.
    if (credential) forget(credential.key)
    this.#forget()
    this.#asking = true
    try {
      const [providers, isPairable] = await Promise.all([listProviders(), canPair()])
      this.gate.set({ state: 'key', problem, providers, canPair: isPairable })
    } finally {
      this.#asking = false
    }
  }

  /** Whether the key is there now. Only a device asks: who signed in may have none. */
  #askForOwnerKey(message: string): Promise<boolean> {
    if (this.credential.value?.device === undefined) return Promise.resolve(false)
    return (this.#ownerKey ??= new Promise<boolean>((resolve) => {
      const settle = (isEntered: boolean): void => {
        this.ownerKeyRequest.set(undefined)
        this.#ownerKey = undefined
        resolve(isEntered)
      }
      this.ownerKeyRequest.set({
        message,
        cancel: () => settle(false),
        enter: async (key) => {
          const asOwner = new Api()
          asOwner.useKey(key)
          await asOwner.agents()
          keep({ key })
          this.#use({ key })
          settle(true)
        },
      })
    }))
  }

  #use(credential: Credential | undefined): void {
    this.api.useKey(credential?.key)
    this.credential.set(credential)
  }

  #forget(): void {
    this.#use(undefined)
    this.ownerKeyRequest.value?.cancel()
    this.notRemembered.set(undefined)
    this.status.set(undefined)
    this.#close()
  }

  #close(): void {
    this.approvals.stop()
    for (const chat of this.#chats.values()) chat.close()
  }
}

function refusalOf({ name, device }: Credential): string {
  if (name !== undefined) return 'Your sign-in has ended. Sign in again.'
  if (device !== undefined) return 'This browser is not a paired device any more. Enter the key again.'
  return 'That key was refused. Check it and try again.'
}

/** Returns what is left to do. */
async function endSignIn(api: Api): Promise<string | undefined> {
  try {
    await api.signOut()
    return undefined
  } catch (error) {
    // It ended already.
    if (error instanceof ApiError && error.status === 401) return undefined
    const why = `The daemon did not end your sign-in, which ends by itself: ${explain(error)}`
    return `${why} An operator can end it on the page Sign-ins.`
  }
}

/** With the key of the device itself. Returns what is left to do. */
async function removeDevice({ key, device }: DeviceCredential): Promise<string | undefined> {
  const asDevice = new Api()
  asDevice.useKey(key)
  try {
    await asDevice.removeDevice(device)
    return undefined
  } catch (error) {
    // It was removed before.
    if (error instanceof ApiError && error.status === 401) return undefined
    return (
      `This browser is still a paired device: ${explain(error)} ` +
      `With the API key you can remove it on the page Devices, by its id ${device}.`
    )
  }
}
