import { reply } from 'svc/sdk'
import type { Reply } from 'svc/sdk'

export function redirect(location: string, status: 302 | 303, cookie?: string): Reply {
  return reply(null, { location, ...(cookie === undefined ? {} : { 'set-cookie': cookie }) }, status)
}
