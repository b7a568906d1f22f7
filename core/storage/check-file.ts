import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'

/** Runs beside the daemon: a gigabyte takes a second or two, which is too long to stand still. */
const CODE = `
const { parentPort, workerData } = require('node:worker_threads')
const Sqlite = require(workerData.engine)
let found
try {
  const db = new Sqlite(workerData.file, { readonly: true, fileMustExist: true })
  try { found = String(db.pragma(workerData.check + '(1)', { simple: true })) } finally { db.close() }
} catch (error) { found = error instanceof Error ? error.message : String(error) }
parentPort.postMessage(found)
`

/**
 * What is wrong with a database file that nobody writes; `undefined` when it is whole. `integrity_check` also compares
 * the indexes with the rows, which takes several times as long.
 */
export async function checkFile(
  file: string,
  check: 'quick_check' | 'integrity_check' = 'quick_check',
): Promise<string | undefined> {
  const worker = new Worker(CODE, {
    eval: true,
    env: {},
    execArgv: [],
    workerData: { file, check, engine: createRequire(import.meta.url).resolve('better-sqlite3') },
  })
  try {
    const found = await new Promise<string>((resolve, reject) => {
      worker.once('message', (text: unknown) => {
        resolve(String(text))
      })
      worker.once('error', reject)
      worker.once('exit', (code) => {
        reject(new Error(`the check of ${file} ended with ${code} without an answer`))
      })
    })
    return found === 'ok' ? undefined : found
  } finally {
    await worker.terminate()
  }
}
