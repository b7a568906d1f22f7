import type { GuestOutcome } from './contract.ts'

/** What the runner hands to the thread of a guest. */
export interface GuestData {
  readonly module: Uint8Array
  readonly input: Uint8Array
  readonly fuel: bigint
  readonly memoryPages: number
  readonly moduleBytes: number
  readonly outputBytes: number
  /** One number: 1 when an answer of the host has arrived. */
  readonly ready: SharedArrayBuffer
}
/** What the thread reports. */
export type GuestMessage =
  | { readonly type: 'call'; readonly request: Uint8Array }
  | {
      readonly type: 'end'
      readonly outcome: GuestOutcome
      readonly output: Uint8Array
      readonly message: string
      readonly fuelUsed: bigint
      readonly log: string
    }
