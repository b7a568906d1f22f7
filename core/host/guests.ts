import type { GuestEnd, GuestRun, GuestRunner } from '../wasm/runner.ts'
import { defineService } from './define.ts'

export type { GuestEnd, GuestRun }

/** Runs WebAssembly modules nobody has to trust. Provided by the core. */
export interface Guests {
  /** Throws `rate_limit` when too many wait, and the signal's reason. What the guest does wrong is its outcome. */
  run(request: GuestRun): Promise<GuestEnd>
}
export const Guests = defineService<Guests>()('guests')

/** The runner is made with the first guest: most daemons never have one. */
export function lazyGuests(): Guests {
  let runner: Promise<GuestRunner> | undefined
  const make = async (): Promise<GuestRunner> => new (await import('../wasm/runner.ts')).GuestRunner()
  return { run: async (request) => (await (runner ??= make())).run(request) }
}
