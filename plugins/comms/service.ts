import type { Clock } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Agents, Family } from '../agents/contract.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { ChannelMessages } from '../channels/contract.ts'
import type { Chat } from '../chat/contract.ts'
import type { AgentMessage, AgentMessages } from '../delegation/contract.ts'
import type { Settings } from './config.ts'
import { CommsEvents } from './events.ts'
import { messageEvent, send } from './send.ts'
import type { SendBody, Sent, Topology } from './schema.ts'
import { CommsStore } from './store.ts'
import { readTopology } from './topology.ts'

export interface CommsDeps {
  readonly db: PluginDatabase
  readonly agents: Agents
  readonly family: Pick<Family, 'parentOf'>
  readonly audit: Audit
  readonly feed: AuditFeed
  readonly chat: Chat
  readonly messages: AgentMessages
  readonly channels: () => ChannelMessages | undefined
  readonly settings: Settings
  readonly log: Pick<Logger, 'error'>
  readonly clock: Clock
  readonly counted: () => void
}

/** Messages between agents, and what can be seen of them. */
export class Comms {
  readonly events: CommsEvents
  readonly #deps: CommsDeps
  readonly #store: CommsStore
  constructor(deps: CommsDeps) {
    this.#deps = deps
    this.#store = new CommsStore(deps.db, deps.log)
    this.events = new CommsEvents({ ...deps, store: this.#store })
  }

  send(body: SendBody, id: string | undefined): Promise<Sent> {
    const { clock } = this.#deps
    return send({ ...this.#deps, store: this.#store, added: this.#added, now: () => clock.now() }, body, id)
  }
  /** For the batch that makes the message durable. */
  record(message: AgentMessage): Statement {
    return this.#store.insert(messageEvent(message, this.#deps.clock.now()), this.#added)
  }
  topology(): Promise<Topology> {
    const { agents, family } = this.#deps
    return readTopology(agents, family, this.#store)
  }

  readonly #added = (): void => {
    this.#deps.counted()
    this.events.added()
  }
}
