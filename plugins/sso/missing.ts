import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'

export function unknownProvider(id: string, known: Iterable<string>): Refusal {
  const name = id.slice(0, 64)
  return new Refusal('provider_not_found', `No sign-in provider "${name}"${suggest(findNearest(name, known))}`)
}
