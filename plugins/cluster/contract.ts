import { defineService, notify } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

/** A daemon on the database. */
export interface Member {
  /** Of this run of the daemon, as `Broadcast.daemonId`; never used again. */
  readonly id: string
  /** Of its home: the same in every run. */
  readonly homeId: string
  readonly hostName: string
  /** Where it listens; `undefined` until it does. */
  readonly address: string | undefined
  readonly version: string
  /** ISO 8601 UTC. */
  readonly startedAt: string
  readonly state: 'active' | 'draining'
}

/**
 * The daemons that share a database. What a daemon owns (a session, an account of a channel) names its id, and is lost
 * to the others once it is dead.
 */
export interface Cluster {
  /** The id of this daemon. */
  readonly self: string
  /** Whether this daemon is to take nothing more over. */
  readonly isDraining: boolean
  /** Those that are alive, this one included, the oldest first. */
  members(): Promise<readonly Member[]>
  /** As known here, which is at most a third of a lease old. A daemon that was never seen is dead. */
  isAlive(id: string): boolean
  /**
   * For every batch that acts on what this daemon owns: makes it fail, whole, when this daemon was declared dead
   * meanwhile. Empty where no other daemon can be.
   */
  fence(): readonly Statement[]
}
export const Cluster = defineService<Cluster>()('cluster')

/** A daemon left, or was declared dead: what it owned can be taken over. Told in each of the others. */
export const MemberEnded = notify<{ readonly id: string; readonly homeId: string }>('cluster:member-ended')
