/**
 * What is said between the daemon and the thread a guest runs in. The guest exports `memory`, `alloc(size) -> pointer` and
 * `execute(pointer, length) -> i64`, which is the pointer of its answer in the upper and its length in the lower 32 bits; it may import
 * `host_call(pointer, length) -> i64` and `host_log(level, pointer, length)` of the module `svc`, and nothing else.
 */
export interface GuestData {
  readonly module: Uint8Array
  readonly input: Uint8Array
  readonly fuel: bigint
  readonly memoryPages: number
  readonly moduleBytes: number
  readonly outputBytes: number
  /** One number: 1 when an answer of the host is there. */
  readonly ready: SharedArrayBuffer
}
export type Outcome = 'done' | 'fuel_exhausted' | 'deadline' | 'memory_limit' | 'trap' | 'abi'
export type GuestMessage =
  | { readonly type: 'call'; readonly request: Uint8Array }
  | {
      readonly type: 'end'
      readonly outcome: Outcome
      readonly output: Uint8Array
      readonly message: string
      readonly fuelUsed: bigint
      readonly log: string
    }
