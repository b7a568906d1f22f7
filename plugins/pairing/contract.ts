import { transform } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { AuditEntry } from '../audit/contract.ts'

/** Something that a device began and that goes on when the device is removed. */
export interface DeviceWork {
  readonly kind: 'agent' | 'schedule' | 'task' | 'trigger' | 'turn' | 'workflow_run'
  readonly id: string
  readonly name: string
  /** Whose it is, or whom it asks; empty when it is nobody's. */
  readonly agentId: string
  /** Ends it, in the batch that removes the device, with an entry of the trail. They fail the batch where it changed meanwhile. */
  readonly statements: readonly Statement[]
  /** After that batch: ends what runs of it. */
  readonly after?: () => Promise<unknown>
}
export interface DeviceWorkAsked {
  /** About what the device and its turns made and changed, the oldest first. */
  readonly entries: readonly AuditEntry[]
  /** What turns remember of the device that sent their message. */
  readonly credential: string | undefined
  /** Why it ends, for records. */
  readonly reason: string
  readonly found: readonly DeviceWork[]
  /** Turns, by id, that the device or what is found began: what they made is the device's as well. */
  readonly turns: readonly string[]
}
/** Every plugin adds what it has that a device began and that goes on. Asked again while there are more turns. */
export const DeviceWorkListed = transform<DeviceWorkAsked>('pairing:device-work-listed')
