import type { Actor } from '../scope/actor.ts'

/**
 * Who holds a credential that a plugin accepts: a person who signed in, or a device that was paired. `name` is for people to read, `id` the
 * plugin's own: of the sign-in or of the device.
 */
export interface Holder {
  readonly kind: 'user' | 'device'
  readonly name: string
  readonly id: string
}
/** Who makes a request. `operator` holds the API key; `anonymous` calls a daemon that has none, or a public route. */
export type Principal = { readonly kind: 'operator' | 'anonymous' | 'platform' } | Holder

/** Who it was, for a record of what they did: a paired device and somebody signed in are told from whoever holds the key. */
export function nameOf(principal: Principal): string {
  return 'name' in principal ? `${principal.kind} "${principal.name}"` : 'operator'
}

/** Who makes a request, as records of what comes of it name them. */
export function actorOf({
  principal,
  clientAddress: address,
}: {
  readonly principal: Principal
  readonly clientAddress: string
}): Actor {
  return 'id' in principal
    ? { kind: principal.kind, id: principal.id, name: principal.name, address }
    : { kind: principal.kind, address }
}
