import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtInFolders } from '../../core/host/folders.ts'
import { createLoader } from '../../core/host/loader.ts'
import { createLog } from '../../core/log/log.ts'
import { openDatabase } from '../../core/storage/open.ts'

let starts = 0
let file: Promise<Buffer> | undefined

/**
 * Gives a new home the database that a first start leaves before its plugins are set up: their tables, without rows.
 * Making 250 tables takes half of the time of a start. The first home of a process gets none, so that its start makes
 * them; the others get what the same migrations have made.
 */
export async function addEmptyTables(home: string): Promise<void> {
  if (starts++ === 0) return
  file ??= makeTables()
  const folder = join(home, 'data')
  await mkdir(folder, { mode: 0o700 })
  await writeFile(join(folder, 'svc.db'), await file, { mode: 0o600 })
}

async function makeTables(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-tables-'))
  try {
    const path = join(folder, 'svc.db')
    const folders = await builtInFolders()
    const loader = createLoader({ builtIns: new Set(folders), cacheDir: undefined })
    const definitions = await Promise.all(folders.map((plugin) => loader.load(plugin, false)))
    const log = createLog({ level: 'silent', colored: false, write: () => undefined })
    {
      await using database = await openDatabase({ url: `sqlite:${path}`, log })
      for (const { name, migrations = [] } of definitions) await database.migrate(name, migrations, { strict: true })
    }
    return await readFile(path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
