import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Sqlite from 'better-sqlite3'
import { startDaemon } from '../support/daemon.ts'
import { generator } from './crash.ts'
import type { Json } from '../support/json.ts'

const fixture = fileURLToPath(new URL('../fixtures/first-release', import.meta.url))
/** What the home of the first version holds; ids as they were. */
export const releasedData = {
  first: '56289694-3629-4ed4-b672-710c282f28a2',
  session: '1f881bab-be57-43b0-ad76-31931dcf3bae',
  approval: '261ecb64-2dff-423d-918b-9d0b149b10fb',
  entries: 21,
  secret: 'sk-fixture-key-of-the-landing-000',
} as const

/** A home as the first version left it: its database, the key of its vault, the anchor of its audit trail. */
export async function firstReleaseHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-first-release-'))
  await mkdir(join(home, 'data'))
  const db = new Sqlite(join(home, 'data', 'svc.db'))
  db.pragma('journal_mode = WAL')
  db.exec(await readFile(join(fixture, 'svc.sql'), 'utf8'))
  db.pragma('application_id = 1937138481')
  db.close()
  for (const name of ['audit.anchor', 'vault.key']) await copyFile(join(fixture, name), join(home, name))
  return home
}

export interface MigrateReport {
  readonly rounds: number
  readonly seed: number
  readonly problems: readonly string[]
}

/** Kills the daemon at random moments while it brings the first version's database up to date, again and again. */
export async function migrate(options: {
  readonly rounds: number
  readonly seed: number
  readonly built?: boolean
}): Promise<MigrateReport> {
  const random = generator(options.seed)
  const problems: string[] = []
  for (let round = 0; round < options.rounds && problems.length === 0; round++) {
    const home = await firstReleaseHome()
    try {
      for (let kill = 0; kill < 2; kill++) {
        // Dies before it says that it listens, at whatever step it is.
        const abort = new AbortController()
        const starting = startDaemon({ home, built: options.built ?? false, signal: abort.signal })
        const timer = setTimeout(() => abort.abort(), 150 + random() * (options.built === true ? 250 : 900))
        await starting.then(
          (daemon) => daemon.kill(),
          () => undefined /* killed before it listened, which is what is wanted */,
        )
        clearTimeout(timer)
      }
      await using daemon = await startDaemon({ home, built: options.built ?? false })
      const get = async (path: string): Promise<Json> => await (await fetch(daemon.url + path)).json()
      const agents = (await get('/api/agents')) as { name: string }[]
      if (!agents.some(({ name }) => name === 'first') || !agents.some(({ name }) => name === 'second'))
        problems.push(`round ${round}: agents are ${JSON.stringify(agents)}`)
      const { kv_pairs: pairs } = await get(`/api/memory/agents/${releasedData.first}/kv`)
      if (pairs.length !== 3) problems.push(`round ${round}: keys are ${JSON.stringify(pairs)}`)
      const audit = await get('/api/audit/verify')
      if (audit.status !== 'valid' || audit.chain_length < releasedData.entries)
        problems.push(`round ${round}: the trail is ${JSON.stringify(audit)}`)
      await daemon.stop()
      const db = new Sqlite(join(home, 'data', 'svc.db'), { readonly: true })
      const check = db.pragma('integrity_check', { simple: true })
      db.close()
      if (check !== 'ok') problems.push(`round ${round}: ${String(check)}`)
      if (!existsSync(join(home, 'data', 'snapshots')))
        problems.push(`round ${round}: no copy was taken before the tables changed`)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }
  return { rounds: options.rounds, seed: options.seed, problems }
}
