import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import type { Auth } from '../auth/bearer.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { defineRoute } from './route.ts'
import type { AnyRoute } from './route.ts'
import type { SharedTickets } from './shared-tickets.ts'

const ticketSecs = 30
const maxTickets = 1_000
const prefix = 'svc.ticket.'

/**
 * One-use passes for a WebSocket upgrade. A browser cannot set the Authorization header of an upgrade, and the key must
 * never stand in a URL; a page asks for a ticket with its key and offers it as sub-protocol `svc.ticket.<value>`,
 * beside `svc`.
 */
export class Tickets {
  #open = new Map<string, { readonly until: number; readonly generation: number; readonly principal: Principal }>()
  #auth: Pick<Auth, 'generation' | 'holds'>
  #shared: (() => Promise<SharedTickets>) | undefined
  /** `shared`: where any daemon on the database has to accept what one of them issued. */
  constructor(auth: Pick<Auth, 'generation' | 'holds'>, shared?: () => Promise<SharedTickets>) {
    this.#auth = auth
    this.#shared = shared
  }

  async issue(principal: Principal): Promise<string> {
    if (this.#shared) return (await this.#shared()).issue(principal, ticketSecs, maxTickets)
    const now = performance.now()
    for (const [value, { until }] of this.#open) if (until <= now) this.#open.delete(value)
    if (this.#open.size >= maxTickets)
      throw new Refusal('service_unavailable', 'Too many tickets are open', { retryAfterSecs: ticketSecs })
    const value = randomBytes(24).toString('base64url')
    this.#open.set(value, { until: now + ticketSecs * 1000, generation: this.#auth.generation(), principal })
    return value
  }

  /**
   * Uses a ticket up and tells whose it was. A key that was changed since takes its tickets with it, and so does a
   * credential that ended.
   */
  async redeem(value: string): Promise<Principal | undefined> {
    if (this.#shared) return (await this.#shared()).redeem(value)
    const ticket = this.#open.get(value)
    this.#open.delete(value)
    return ticket !== undefined &&
      ticket.until > performance.now() &&
      this.#auth.holds(ticket.principal, ticket.generation)
      ? ticket.principal
      : undefined
  }

  route(): AnyRoute {
    return defineRoute({
      method: 'POST',
      path: '/api/auth/ws-ticket',
      summary: 'Get a ticket for one WebSocket connection',
      description:
        'For browsers, which cannot send the Authorization header with an upgrade: ' +
        'offer the sub-protocols "svc" and "svc.ticket.<ticket>".',
      auth: 'bearer',
      effect: 'own',
      idempotent: false,
      cost: 1,
      returns: v.object({ ticket: v.string(), protocol: v.string(), expires_in: v.number() }),
      handle: async ({ principal }) => {
        const ticket = await this.issue(principal)
        return { ticket, protocol: `${prefix}${ticket}`, expires_in: ticketSecs }
      },
    })
  }
}

/** The sub-protocols offered, told apart: the ticket, and the one to answer with. */
export function offeredProtocols(header: string | undefined): {
  readonly ticket: string | undefined
  readonly answer: string | undefined
} {
  const offered = header?.split(',').map((part) => part.trim()) ?? []
  const ticket = offered.find((part) => part.startsWith(prefix))
  // A browser drops the connection when none of its offers is chosen. The ticket is used up by then and may be
  // repeated.
  return { ticket: ticket?.slice(prefix.length), answer: offered.includes('svc') ? 'svc' : ticket }
}
