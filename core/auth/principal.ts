import { omitUndefined } from '../schema/object.ts'
import type { Actor } from '../scope/actor.ts'
import { remember } from './presented.ts'

/** Who holds a credential that a plugin accepts. `name` is for people to read, `id` the plugin's own. */
export interface Holder {
  /** The plugin's word for such a holder, such as `user`. */
  readonly kind: string
  /** The subject of a sentence about such a holder, such as `A signed-in user`. */
  readonly title?: string
  /** What records call the credential, such as `sign-in`; `kind` when absent. */
  readonly label?: string
  /** For people to read, such as an e-mail address. */
  readonly name: string
  /** The plugin's own id of the credential. */
  readonly id: string
  /** Id of the person: the same for all their credentials, and never a text that they choose. */
  readonly subject?: string
}
/** Who makes a request. `operator` holds the API key; `anonymous` calls a daemon that has none, or a public route. */
export type Principal = { readonly kind: 'operator' | 'anonymous' | 'platform' } | Holder

/** Who it was, for a record of what they did: holders of other credentials differ from whoever holds the key. */
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
    ? omitUndefined({
        kind: principal.kind,
        label: principal.label,
        id: principal.id,
        name: principal.name,
        subject: principal.subject,
        address,
        credential: remember(principal),
      })
    : { kind: principal.kind, address }
}
