import { notify } from 'svc/sdk'

export interface PublishedEvent {
  readonly id: string
  /** Lower case words with dots, such as `report.ready`. */
  readonly eventType: string
  /** Whatever JSON the publisher gave. */
  readonly payload: unknown
  readonly agentId: string
  /** ISO 8601 UTC. */
  readonly at: string
  /** What the payload may come from, such as `ExternalNetwork`: whoever makes a prompt of it labels that. */
  readonly labels: readonly string[]
}
/** An agent told everybody that something happened. It is in the audit trail already. */
export const EventPublished = notify<PublishedEvent>('events:published')
