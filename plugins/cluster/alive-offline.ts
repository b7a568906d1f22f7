import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { OfflineDeps } from 'svc/internal'
import { MemberStore } from './store.ts'
import { FILE, isCountedUp } from './twin.ts'

const Config = v.looseObject({ home_dir: v.string() })

/**
 * Names of the daemons that are on the database, without the one of this home, whose lock says that it is over. Of each
 * row it is waited whether it is counted up.
 */
export async function listAlive({ config, db, log }: Pick<OfflineDeps, 'config' | 'db' | 'log'>): Promise<string[]> {
  if (!db || db.dialect === 'sqlite') return []
  const store = new MemberStore(db, log)
  if (!(await store.isThere())) return []
  const last = await readFile(join(v.parse(Config, config).home_dir, FILE), 'utf8').catch(() => undefined)
  const rows = (await store.members()).filter(({ id }) => id !== last)
  const found = await Promise.all(rows.map((row) => isCountedUp(store, row, { aborted: false })))
  return rows.filter((_, at) => found[at]).map(({ name }) => name)
}
