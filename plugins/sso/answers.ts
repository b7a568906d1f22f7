import { findNearest, suggest } from 'svc/internal'
import { omitUndefined, Refusal, reply } from 'svc/sdk'
import type { Reply } from 'svc/sdk'

export function redirect(location: string, status: 302 | 303, cookie?: string): Reply {
  return reply(null, { location, ...omitUndefined({ 'set-cookie': cookie }) }, status)
}

export function unknownProvider(id: string, known: Iterable<string>): Refusal {
  const name = id.slice(0, 64)
  return new Refusal('provider_not_found', `No sign-in provider "${name}"${suggest(findNearest(name, known))}`)
}
