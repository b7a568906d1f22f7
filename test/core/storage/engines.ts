import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConsola } from 'consola'
import type { ConsolaInstance } from 'consola'
import { openDatabase } from '../../../core/storage/open.ts'
import type { Database } from '../../../core/storage/database.ts'
import { cleanups } from '../../support/cleanups.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'

export type EngineName = 'sqlite' | 'postgresql'
export const engines: readonly EngineName[] = ['sqlite', 'postgresql']

export interface Opened {
  readonly database: Database
  readonly dir: string
  readonly file: string
  readonly url: string
  readonly log: readonly string[]
}

let folders: string[] = []
let databases: Database[] = []
let servers: TestDatabase[] = []
cleanups.eachTest.push(async () => {
  for (const database of databases.splice(0)) await database[Symbol.asyncDispose]()
  await Promise.all(servers.splice(0).map((database) => database[Symbol.asyncDispose]()))
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

/** The address of an empty database on the PostgreSQL of this run, gone after the test. */
export async function emptyPostgres(): Promise<string> {
  const made = await createTestDatabase()
  servers.push(made)
  return made.url
}

/** Databases that are opened with it hear each other. */
export const broadcastKey = async (): Promise<Uint8Array> => Buffer.alloc(32, 'key of tests')

/** An empty database on a file or on a PostgreSQL server, closed after the test. */
export async function open(engine: EngineName): Promise<Opened> {
  const dir = await folder()
  const file = join(dir, 'data', 'svc.db')
  const { log, lines } = recorder()
  const url = engine === 'sqlite' ? `sqlite:${file}` : await emptyPostgres()
  const database = await openDatabase({ url, log, broadcastKey })
  databases.push(database)
  return { database, dir, file, url, log: lines }
}
/** Ties a database that a test opened itself to the test. */
export function closing(database: Database): Database {
  databases.push(database)
  return database
}
