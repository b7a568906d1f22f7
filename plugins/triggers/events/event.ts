import type { Label } from '../../sessions/contract.ts'

/** What the pattern of a trigger asks for first. */
export type EventClass = 'lifecycle' | 'system' | 'memory' | 'task' | 'custom' | 'message' | 'tool' | 'other'

/**
 * Something that happened, read from an entry of the audit trail: it exists if and only if the entry is on disk, and
 * has the same id whenever it is read.
 */
export interface TriggerEvent {
  readonly id: string
  /** The number of the entry. */
  readonly position: number
  readonly class: EventClass
  /** Such as `agent_spawned`. */
  readonly kind: string
  /** What it is about: the cool-down of one thing does not hold back another. */
  readonly subject: string
  /** The agent it concerns; empty when none. */
  readonly agentId: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** The turn or run in which it was caused. */
  readonly origin: string | undefined
  /** A sentence from the entry alone. */
  readonly sentence: string
  readonly agentName?: string
  /** Of a change of the memory. */
  readonly memoryKey?: string
  readonly turnId?: string
  readonly taskId?: string
  /** Of an event that an agent published. */
  readonly publishedId?: string
}

/** How an event is told to an agent. */
export interface Narrative {
  readonly text: string
  /** Where it comes from. */
  readonly labels: readonly Label[]
}
