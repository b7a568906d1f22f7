import type { Principal } from 'svc/sdk'
import type { MemoryReader } from '../contract.ts'

/** Who somebody is for memories: the owner of the daemon, with the key or a paired device, or one who signed in. */
export function readerOf(principal: Principal): MemoryReader {
  if (principal.kind === 'user' && 'id' in principal)
    return { kind: 'person', userId: principal.subject ?? `user:${principal.id}` }
  return 'id' in principal ? { kind: 'person' } : { kind: 'operator' }
}
