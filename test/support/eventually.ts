import { vi } from 'vitest'
import { PATIENCE_MS } from './patience.ts'

/** Waits until the check throws no more, as long as a loaded machine may take; `vi.waitFor` gives up after a second. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: PATIENCE_MS })
}
