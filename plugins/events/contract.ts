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
  /**
   * Where the payload may come from, such as `ExternalNetwork`: a plugin that makes a prompt of it adds these labels.
   */
  readonly labels: readonly string[]
}
/** An agent published an event. It is in the audit trail already. */
export const EventPublished = notify<PublishedEvent>('events:published')
