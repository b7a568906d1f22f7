import type { Principal } from './principal.ts'

/** The name of a source and the digest of a credential. */
export interface Presented {
  readonly name: string
  readonly digest: string
}
const presented = new WeakMap<Principal, Presented>()

export function notePresented(principal: Principal, what: Presented): void {
  presented.set(principal, what)
}
/** What a principal presented, to find it again; `undefined` of one who presented no such credential. */
export function presentedBy(principal: Principal): Presented | undefined {
  return presented.get(principal)
}
/** The same as text to store, that opens nothing. */
export function remember(principal: Principal): string | undefined {
  const found = presentedBy(principal)
  return found && `${found.digest} ${found.name}`
}
