import { enforced } from 'svc/internal'
import { Refusal } from 'svc/sdk'

const ESCAPE = /^[/~\\]|^[a-z]:[\\/]|(^|[\\/])\.\.([\\/]|$)/i

/** Throws `forbidden` for a name that leads out of a workspace, whatever else is wrong with it. */
export function refuseEscape(name: string): void {
  if (!ESCAPE.test(name)) return
  enforced('path_traversal_prevention')
  throw new Refusal('forbidden', 'The name leads out of the workspace')
}
