import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import { createConsola } from 'consola'
import type { ConsolaInstance } from 'consola'
import type { Connector } from 'db0'
import pgliteConnector from 'db0/connectors/pglite'
import { openDatabase } from '../../../core/storage/open.ts'
import type { Database } from '../../../core/storage/database.ts'
import { cleanups } from '../../support/cleanups.ts'
import { emptyCluster } from '../../support/postgres.ts'

export type EngineName = 'sqlite' | 'pglite'
export const engines: readonly EngineName[] = ['sqlite', 'pglite']

export interface Opened {
  readonly database: Database
  readonly dir: string
  readonly file: string
  readonly url: string
  readonly log: readonly string[]
}

let folders: string[] = []
let databases: Database[] = []
cleanups.eachTest.push(async () => {
  for (const database of databases.splice(0)) await database[Symbol.asyncDispose]()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

/** A temporary folder that is gone after the test. */
export async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'svc-storage-'))
  folders.push(made)
  return made
}

export function recorder(): { readonly log: ConsolaInstance; readonly lines: string[] } {
  const lines: string[] = []
  return {
    lines,
    log: createConsola({
      level: 5,
      reporters: [
        {
          log: (entry) => {
            lines.push(entry.args.map((arg) => (typeof arg === 'string' ? arg : JSON.stringify(arg))).join(' '))
          },
        },
      ],
    }),
  }
}

// Starting PGlite takes seconds and a lot of memory: one for all files of the process, with an empty schema for each
// database.
let server: Promise<Connector<PGlite>> | undefined
cleanups.eachFile.push(async () => {
  const client = await (await server)?.getInstance()
  // What a file has set for its connection is not for the next one.
  await client?.exec('ROLLBACK')
  await client?.exec('DISCARD ALL')
})
export async function pglite(options: { readonly keep?: boolean } = {}): Promise<Connector<PGlite>> {
  server ??= emptyCluster().then((loadDataDir) => pgliteConnector({ loadDataDir }))
  const connector = await server
  const client = await connector.getInstance()
  if (!options.keep) await client.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  return {
    ...connector,
    async dispose() {
      /* Shared by all tests of the process. */
    },
  }
}

/** An empty database on a file or on PGlite, closed after the test. */
export async function open(engine: EngineName): Promise<Opened> {
  const dir = await folder()
  const file = join(dir, 'data', 'svc.db')
  const { log, lines } = recorder()
  const url = `sqlite:${file}`
  const database = await openDatabase({ url, log, ...(engine === 'pglite' ? { connector: await pglite() } : {}) })
  databases.push(database)
  return { database, dir, file, url, log: lines }
}
/** Ties a database that a test opened itself to the test. */
export function closing(database: Database): Database {
  databases.push(database)
  return database
}
