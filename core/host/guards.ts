import type { RawAnswer } from '../http/own-port.ts'
import type { Tried } from '../net/rehearsal.ts'
import type { Pace } from '../screening/pace.ts'
import { defineService } from './define.ts'

export type { RawAnswer }

/** The guards of this daemon as they are installed: who asks here asks the objects that requests pass. Provided by the core, for probes. */
export interface Guards {
  /** Sends bytes to the daemon's own port as a stranger would. `undefined` while no port is open; rejects when nothing comes back in time. */
  exchange(bytes: string): Promise<RawAnswer | undefined>
  /** Host and port for a `Host` header; `undefined` while no port is open. */
  host(): string | undefined
  /** A number that grows when the limiter of requests charges a client at this address; `undefined` when it never did. */
  charged(address: string): number | undefined
  /** A made-up value which the daemon knows as a secret of its own from then on; the same at every call. */
  plantedSecret(): string
  /** Whether the arguments of a tool call hold a secret: the question the tools' door asks. */
  holdsSecret(args: unknown): boolean
  /** Folders that code and configuration are loaded from, and those no program of an agent sees. */
  programFolders(): readonly [code: readonly string[], hidden: readonly string[]]
  /** Tries a client made by the same function as the daemon's own way out, against a listener of its own that counts. */
  rehearseOutbound(signal: AbortSignal): Promise<readonly Tried[]>
  /** How long the screening of a mebibyte takes, in another process of this installation. */
  timeScreening(signal: AbortSignal): Promise<Pace>
  /** The daemon is not well because of this; `undefined` takes it back. For parts without which no record can be trusted. */
  impaired(part: string, why: string | undefined): void
}
export const Guards = defineService<Guards>()('guards')
