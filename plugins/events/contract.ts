import { defineService, notify } from 'svc/sdk'

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
/** An agent published an event. It and its entry in the audit trail are on disk. */
export const EventPublished = notify<PublishedEvent>('events:published')

/** What was published, for readers that learn of it later, such as those that follow the audit trail. */
export interface PublishedEvents {
  /** `undefined` when it is older than `plugins.events.retention_hours`. */
  find(id: string): Promise<PublishedEvent | undefined>
}
export const PublishedEvents = defineService<PublishedEvents>()('published-events')
