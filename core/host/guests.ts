import type { GuestProcess } from '../wasm/guest-process.ts'
import type { GuestEnd, GuestRun } from '../wasm/runner.ts'
import { defineService } from './define.ts'

export type { GuestEnd, GuestRun }

/** Runs WebAssembly modules nobody has to trust. Provided by the core. */
export interface Guests {
  /** Throws `rate_limit` when too many wait, and the signal's reason. What the guest does wrong is its outcome. */
  run(request: GuestRun): Promise<GuestEnd>
}
export const Guests = defineService<Guests>()('guests')

/** The process for guests is there while there are guests: most daemons never have one. */
export function lazyGuests(): Guests & AsyncDisposable {
  let guests: Promise<GuestProcess> | undefined
  const make = async (): Promise<GuestProcess> => new (await import('../wasm/guest-process.ts')).GuestProcess()
  return {
    run: async (request) => (await (guests ??= make())).run(request),
    async [Symbol.asyncDispose]() {
      ;(await guests)?.[Symbol.dispose]()
    },
  }
}
