import { defineService, notify, transform } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

/** A daemon on the database. */
export interface Member {
  /** Of this run of the daemon, as `Broadcast.daemonId`; never used again. */
  readonly id: string
  /** Of its home: the same in every run. */
  readonly homeId: string
  /** What its operator calls it: the name of its machine, unless it was given another. */
  readonly name: string
  readonly hostName: string
  /** Where it listens; `undefined` until it does. */
  readonly address: string | undefined
  readonly version: string
  /** ISO 8601 UTC. */
  readonly startedAt: string
  /**
   * `draining`: it takes nothing more over and ends what it has. `impaired`: likewise, because a plugin of svc failed
   * there that works in another daemon. `unknown`: another build of svc wrote it.
   */
  readonly state: 'active' | 'draining' | 'impaired' | 'unknown'
}

/** What has to be the same in every daemon on the database. */
export interface Agreement {
  /** Of the configuration, such as `plugins.queue.driver`. */
  readonly key: string
  /** What this daemon works with, for a person; no secret. */
  readonly value: string
  /** What happens otherwise, as a sentence without its stop. */
  readonly otherwise: string
}

/**
 * The daemons that share a database. What a daemon owns (a session, an account of a channel) names its id, and is lost
 * to the others once it is dead.
 *
 * A daemon that was declared dead, because it was paused or cut off for longer than a lease, finds that out with its
 * next beat, message or fenced batch. It then restarts in its process: what it owned goes with its memory, and it joins
 * again under a new id. Until then its fenced batches fail.
 */
export interface Cluster {
  /** The id of this daemon. */
  readonly self: string
  /** Whether this daemon is to take nothing more over: it drains, or is impaired. */
  readonly isDraining: boolean
  /** Those that are alive, this one included, the oldest first. Reads the database. */
  members(): Promise<readonly Member[]>
  /**
   * As known here, which is at most a third of a lease old. One that joined a moment ago may not be known yet: a batch
   * that takes something over has `unlessAlive` too. `false` for this daemon once it was declared dead.
   */
  isAlive(id: string): boolean
  /**
   * For every batch that acts on what this daemon owns: makes it fail with `service_unavailable`, whole, when this
   * daemon was declared dead meanwhile; as long as the batch runs it is not. Goes first. Empty where no other daemon can
   * be.
   */
  fence(): readonly Statement[]
  /**
   * For a batch that takes over what a daemon owned: makes it fail with `service_unavailable`, whole, while that one is
   * alive. Empty where no other daemon can be.
   */
  unlessAlive(id: string): readonly Statement[]
  /**
   * For the setup of a plugin, before it does anything: throws `StartRefused` while another daemon on the database works
   * with something else. Settles at once where no other daemon can be.
   */
  agree(agreement: Agreement): Promise<void>
}
export const Cluster = defineService<Cluster>()('cluster')

/** A daemon left, or was declared dead: what it owned can be taken over. Told in each of the others, once. */
export const MemberEnded = notify<{ readonly id: string; readonly homeId: string }>('cluster:member-ended')

/** This daemon is to take nothing more over, or again something: it hands over what can go on elsewhere. */
export const DrainingChanged = notify<{ readonly isDraining: boolean }>('cluster:draining-changed')

/** What a daemon has, for whoever looks at the cluster. */
export interface OwnedCount {
  /** The id of a member, or of its home. */
  readonly owner: string
  /** In the plural, such as `turns`. */
  readonly what: string
  readonly count: number
}
/** Asks what the daemons on the database have: each plugin adds what its tables say, of all daemons. */
export const OwnedCounted = transform<readonly OwnedCount[]>('cluster:owned-counted')

/** What a daemon was to do as the others did, and has not done. */
export interface MemberProblem {
  /** The id of a member, or of its home. */
  readonly owner: string
  /** For a person. */
  readonly text: string
}
/** Asks what the daemons on the database have not done: each plugin adds what its tables say, of all daemons. */
export const MemberProblemsListed = transform<readonly MemberProblem[]>('cluster:member-problems-listed')
