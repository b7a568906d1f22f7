/**
 * Runs under a limit on the size of files, which stands for a full disk: writes until it is refused, says how reads
 * fare, waits for the limit to be lifted and writes again. One JSON line for each step.
 */
import { once } from 'node:events'
import { createConsola } from 'consola'
import { Refusal } from '../../../../core/errors/error.ts'
import { openDatabase } from '../../../../core/storage/open.ts'

process.on('SIGXFSZ', () => {
  /* The write fails then; without a listener the signal would end the process. */
})
const say = (step: object): void => {
  process.stdout.write(`${JSON.stringify(step)}\n`)
}
const database = await openDatabase({ url: process.argv[2] ?? '', log: createConsola({ level: -999 }) })
const { sql } = database
await database.migrate('full', [{ id: '1', sql: 'CREATE TABLE full_row (id INTEGER PRIMARY KEY, body TEXT NOT NULL)' }])
let acknowledged = 0
let refusal: unknown
while (!refusal) {
  const results = await Promise.allSettled(
    Array.from(
      { length: 4 },
      (_, lane) => sql.run`INSERT INTO full_row (id, body) VALUES (${acknowledged + lane}, ${'x'.repeat(50_000)})`,
    ),
  )
  const refused = results.find((result) => result.status === 'rejected')
  refusal = refused?.reason
  if (!refused) acknowledged += 4
}
say({ step: 'full', code: refusal instanceof Refusal ? refusal.code : String(refusal) })
const read = await sql.one<{ n: number }>`SELECT count(*) AS n FROM full_row`
say({ step: 'read', n: read?.n, acknowledged, healthy: await database.check() })
process.stdin.resume()
await once(process.stdin, 'data')
let tries = 0
for (;;) {
  tries++
  try {
    await sql.run`INSERT INTO full_row (id, body) VALUES (${1_000_000}, ${'after'})`
    break
  } catch (error) {
    if (!(error instanceof Refusal) || tries > 100) throw error
    await new Promise((resolve) => {
      setTimeout(resolve, 50)
    })
  }
}
const after = await sql.one<{ n: number }>`SELECT count(*) AS n FROM full_row`
say({
  step: 'recovered',
  n: after?.n,
  healthy: await database.check(),
  sound: await sql.one`SELECT svc_sha256('x') AS hash`,
})
await database[Symbol.asyncDispose]()
process.exit(0)
