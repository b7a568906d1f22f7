import { join } from 'node:path'
import type { OfflineDeps, OfflineWork } from 'svc/internal'
import { ANCHOR_FILE, AnchorFile } from './anchor.ts'
import { AuditStore } from './store.ts'
import { Signer } from './tree/signer.ts'
import { TreeStore } from './tree/store.ts'
import { walkTrail } from './walk.ts'

/** The trail of a database that is read only. `bare`: it is no more than a file, without anchor and keys. */
export const verifyOffline: OfflineWork = async (parts, { bare }) => {
  const { db, databaseSnapshots } = parts
  if (!db) throw new Error('there is no database to verify')
  const trail = new AuditStore(db)
  if (!(await isThere(() => trail.tip()))) throw new Error('this database holds no audit trail')
  const tree = new TreeStore(db)
  const empty = {
    blocks: async () => new Map<number, Buffer>(),
    checkpoints: async () => [],
    origin: async () => undefined,
  }
  const vault = readOnlyVault(parts)
  const keys =
    bare === true
      ? {}
      : { anchor: new AnchorFile(join(databaseSnapshots.homeDir, ANCHOR_FILE), vault), signer: new Signer(vault) }
  const verdict = await walkTrail({ trail, tree: (await isThere(() => tree.origin())) ? tree : empty, ...keys })
  return { ...verdict, signatures: verdict.public_key !== undefined && verdict.checkpoint !== null }
}

/** The file may belong to somebody else, or to a version without such a table. */
async function isThere(read: () => Promise<unknown>): Promise<boolean> {
  try {
    await read()
    return true
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('no such table')) return false
    throw error
  }
}

function readOnlyVault({ secret }: OfflineDeps) {
  return { read: secret, write: () => Promise.reject(new Error('nothing is written here')) }
}
