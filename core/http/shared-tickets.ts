import { hash, randomBytes } from 'node:crypto'
import * as v from 'valibot'
import type { Auth } from '../auth/bearer.ts'
import type { CredentialRegistry } from '../auth/credentials.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { readOwnJson } from '../schema/nesting.ts'
import { TicketStore } from '../storage/tickets.ts'
import type { PluginDatabase } from '../storage/database.ts'

/** Presented beside the API key, or what needs no further credential. */
const StoredHolder = v.union([
  v.strictObject({ source: v.string(), digest: v.string() }),
  v.strictObject({ kind: v.picklist(['operator', 'anonymous']) }),
])
type StoredHolder = v.InferOutput<typeof StoredHolder>

/** Tickets that any daemon on the database accepts, once. */
export class SharedTickets {
  readonly #auth: Pick<Auth, 'keyMark'>
  readonly #credentials: Pick<CredentialRegistry, 'presented' | 'findAgain'>
  readonly #store: TicketStore
  constructor(
    auth: Pick<Auth, 'keyMark'>,
    credentials: Pick<CredentialRegistry, 'presented' | 'findAgain'>,
    db: PluginDatabase,
  ) {
    this.#auth = auth
    this.#credentials = credentials
    this.#store = new TicketStore(db)
  }

  async issue(principal: Principal, ttlSecs: number, max: number): Promise<string> {
    const value = randomBytes(24).toString('base64url')
    const holder = JSON.stringify(this.#toStored(principal))
    const ticket = { holder, keyMark: this.#markOf(value, holder) }
    if (await this.#store.insert(digestOf(value), ticket, ttlSecs, max)) return value
    throw new Refusal('service_unavailable', 'Too many tickets are open', { retryAfterSecs: ttlSecs })
  }

  async redeem(value: string): Promise<Principal | undefined> {
    const ticket = await this.#store.take(digestOf(value))
    if (!ticket || ticket.keyMark !== this.#markOf(value, ticket.holder)) return undefined
    const holder = v.parse(StoredHolder, readOwnJson(ticket.holder))
    return 'kind' in holder ? holder : this.#credentials.findAgain(holder.source, holder.digest)
  }

  /** Of the API key, and of the holder too: it cannot be changed in the row. */
  #markOf(value: string, holder: string): string {
    return this.#auth.keyMark(`${value} ${holder}`)
  }
  #toStored(principal: Principal): StoredHolder {
    const presented = this.#credentials.presented(principal)
    if (presented) return { source: presented.name, digest: presented.digest }
    if (principal.kind === 'operator' || principal.kind === 'anonymous') return { kind: principal.kind }
    throw new Refusal('forbidden', 'This credential gets no ticket')
  }
}

/** What is stored is not what opens a socket. */
const digestOf = (value: string): string => hash('sha256', value, 'hex')
