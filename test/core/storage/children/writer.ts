/** Writes rows for ever, 8 at a time, and prints the id of each that was acknowledged. Killed by the test. */
import { createConsola } from 'consola'
import { openDatabase } from '../../../../core/storage/open.ts'

const [url = '', run = '0'] = process.argv.slice(2)
const database = await openDatabase({ url, log: createConsola({ level: -999 }) })
await database.migrate('crash', [{ id: '1', sql: 'CREATE TABLE crash_row (id TEXT PRIMARY KEY, twin TEXT NOT NULL)' }])
await Promise.all(
  Array.from({ length: 8 }, async (_, lane) => {
    for (let n = 0; ; n++) {
      const id = `${run}-${lane}-${n}`
      await database.sql.batch([
        database.sql.sql`INSERT INTO crash_row (id, twin) VALUES (${id}, ${'a'})`,
        database.sql.sql`INSERT INTO crash_row (id, twin) VALUES (${`${id}+`}, ${'b'})`,
      ])
      process.stdout.write(`${id}\n`)
    }
  }),
)
