import { hash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createConsola } from 'consola'
import { openDatabase } from '../../core/storage/open.ts'
import { openVault } from '../../core/storage/vault-file.ts'
import { AnchorFile } from '../../plugins/audit/anchor.ts'
import { migrations } from '../../plugins/audit/migrations.ts'
import { AuditTrail } from '../../plugins/audit/service.ts'
import { Signer } from '../../plugins/audit/tree/signer.ts'
import type { Result } from './figures.ts'
import { Home, median } from './processes.ts'

const ENTRIES = 100_000
const BATCH = 5_000
const ROUNDS = 5
const MAX_RATIO = 5

/** What verifying a long audit trail costs, against reading the same rows and hashing each once. */
export async function auditVerify(): Promise<readonly Result[]> {
  using home = new Home()
  const file = join(home.path, 'data', 'svc.db')
  const log = createConsola({ level: -999 })
  await using database = await openDatabase({ url: `sqlite:${file}`, log })
  await database.migrate('audit', migrations)
  const vault = (await openVault(database, { file: join(home.path, 'vault.key') }, log)).forPlugin('audit')
  const anchor = new AnchorFile(join(home.path, 'audit.anchor'), vault)
  const trail = new AuditTrail({ db: database.sql, anchor, signer: new Signer(vault), log })
  for (let first = 1; first <= ENTRIES; first += BATCH)
    await database.sql.batch(
      Array.from({ length: BATCH }, (_, n) =>
        trail.entry({ event: 'agent_message', agentId: 'bench', details: `message ${first + n}` }),
      ),
    )
  await trail.anchor()
  await trail.checkpoint()
  const verifying: number[] = []
  const hashing: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    hashing.push(await cpuMs(async () => readAndHash(file)))
    verifying.push(
      await cpuMs(async () => {
        const { status, chain_length } = await trail.verify()
        if (status !== 'valid' || chain_length !== ENTRIES) throw new Error(`the trail is ${status}`)
      }),
    )
  }
  const ratio = median(verifying) / median(hashing)
  return [
    {
      label: `audit trail of ${ENTRIES.toLocaleString('en')} entries verified, against one hash for each row`,
      value: `${median(verifying).toFixed(0)} ms`,
      floor: `${median(hashing).toFixed(0)} ms`,
      ratio: `${ratio.toFixed(2)} x`,
      goal: `<= ${MAX_RATIO} x`,
      reached: ratio <= MAX_RATIO,
    },
  ]
}

function readAndHash(file: string): void {
  const database = new Database(file, { readonly: true })
  const rows = database.prepare('SELECT * FROM audit_entry ORDER BY id').iterate()
  let count = 0
  for (const row of rows as Iterable<Record<string, string>>) {
    hash('sha256', `${row['timestamp']}${row['event_type']}${row['agent_id']}${row['details']}${row['prev_hash']}`)
    count++
  }
  database.close()
  if (count !== ENTRIES) throw new Error(`${count} rows were read`)
}

async function cpuMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
