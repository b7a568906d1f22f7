import { defineService } from 'svc/sdk'

/**
 * A guest exports `memory`, `alloc(size) -> pointer` and `execute(pointer, length) -> i64`, which returns the pointer
 * of the output in the upper and its length in the lower 32 bits. It may import `host_call(pointer, length) -> i64` and
 * `host_log(level, pointer, length)` of the module `svc`, and nothing else.
 */
export interface GuestRequest {
  /** A WebAssembly module. */
  readonly module: Uint8Array
  readonly input: Uint8Array
  /** Instructions it may run (default 1,000,000). */
  readonly fuel?: bigint
  /** Milliseconds it may take, compilation included (default and maximum 30,000). */
  readonly deadlineMs?: number
  /** Bytes of memory, in whole pages of 64 KiB (default and maximum 16 MiB). */
  readonly memoryBytes?: number
  /** Bytes of its output (default 1 MiB). */
  readonly outputBytes?: number
  /** Answers `host_call` and checks what the guest may do. Without it every call returns an empty answer. */
  readonly host?: (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>
  /** Ends the guest when it aborts. */
  readonly signal?: AbortSignal
}
export type GuestOutcome = 'done' | 'fuel_exhausted' | 'deadline' | 'memory_limit' | 'trap' | 'abi'
export interface GuestResult {
  readonly outcome: GuestOutcome
  /** Of `done`; otherwise empty. */
  readonly output: Uint8Array
  /** Why the outcome is not `done`. */
  readonly message: string
  /** The same for the same module and input; `undefined` when the guest was ended from outside. */
  readonly fuelUsed: bigint | undefined
  readonly durationMs: number
  /** What it logged, at most 64 KiB. */
  readonly log: string
}

/** Runs untrusted WebAssembly modules: metered, with a deadline and a memory limit, in a process of their own. */
export interface WasmRunner {
  /** Throws `rate_limit` when too many guests wait, and the signal's reason. A failure of the guest is its outcome. */
  run(request: GuestRequest): Promise<GuestResult>
}
export const WasmRunner = defineService<WasmRunner>()('wasm-runner')
