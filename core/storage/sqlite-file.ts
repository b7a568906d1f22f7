import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  chmodSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolder } from './make-folder.ts'
import type { ReadOnlyDatabase } from './read-only.ts'
import { SqliteConnection } from './sqlite-connection.ts'
import { messageOf } from '../errors/message.ts'

/** "svc1" as the application id in the file's header, so that the database of another program is not taken for ours. */
const APPLICATION_ID = 0x73766331
const HEADER = 'SQLite format 3\0'

/** Where the daemon keeps the copies of a database: beside it. */
function snapshotFolder(path: string): string {
  return join(dirname(path), 'snapshots')
}

/** The copies of a database, newest first. */
export function snapshots(path: string): readonly string[] {
  const folder = snapshotFolder(path)
  if (!existsSync(folder)) return []
  const named = readdirSync(folder).filter((name) => name.endsWith('.db'))
  return named
    .map((name) => ({ file: join(folder, name), at: statSync(join(folder, name)).mtimeMs }))
    .toSorted((a, b) => b.at - a.at)
    .map(({ file }) => file)
}

/** The database cannot be used as it is, and nothing was changed. The message says what to do. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
  readonly path: string
  constructor(path: string, problem: string, options: ErrorOptions = {}) {
    super(
      `The database ${path} ${problem}. It was left as it is. To go on, stop svc, move it aside together with its ` +
        `-wal and -shm files, and copy the newest good file from ${snapshotFolder(path)} to ${path}; ` +
        'with no file there svc starts empty.',
      options,
    )
    this.path = path
  }
}

export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/**
 * Opens the file, or makes it when there is none. A file that is empty, damaged or of another program is refused, never
 * replaced: a new database is made under another name and renamed, so an empty file is always the remains of an
 * accident.
 */
export async function openFile(path: string): Promise<SqliteConnection> {
  makeFolder(dirname(path))
  if (!existsSync(path)) await create(path)
  refuseForeign(path)
  using _ = await bystander(path)
  let connection: SqliteConnection
  try {
    connection = await SqliteConnection.open(path)
  } catch (error) {
    throw new DatabaseRefused(path, `cannot be opened (${messageOf(error)})`, {
      cause: error,
    })
  }
  try {
    const id = connection.instance.pragma('application_id', { simple: true })
    if (id !== 0 && id !== APPLICATION_ID) throw new DatabaseRefused(path, 'belongs to another program')
    const found = quickCheck(connection)
    if (found !== 'ok') throw new DatabaseRefused(path, `is damaged (${found})`)
    return connection
  } catch (error) {
    // Without writing the log back.
    connection.poisoned = true
    await connection.close()
    throw error
  }
}

/**
 * Holds its place beside a file that has a log, which a crash left: the last connection to close would write the log
 * back into it, also into one that is damaged and to be left as it is, and one that may only read never does.
 */
async function bystander(path: string): Promise<ReadOnlyDatabase | undefined> {
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return undefined
  const { openReadOnly } = await import('./read-only.ts')
  const reader = openReadOnly(path)
  await reader.sql.one`SELECT count(*) FROM sqlite_schema`.catch(
    () => undefined /* what is wrong is told by the connection that is used */,
  )
  return reader
}

function quickCheck(connection: SqliteConnection): string {
  try {
    return String(connection.instance.pragma('quick_check(1)', { simple: true }))
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Throws `DatabaseRefused` when the database is missing although its sidecar file exists: a new database would hide
 * the loss. A home that was never used has no sidecar file.
 */
export function refuseLost(path: string, sidecar: string): void {
  if (!existsSync(path) && existsSync(sidecar))
    throw new DatabaseRefused(
      path,
      `is missing, although ${sidecar} shows that it existed; put it back, restore a backup, or remove ${sidecar} ` +
        'to start with an empty database',
    )
}

async function create(path: string): Promise<void> {
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })
  if (wal && wal.size > 0) throw new DatabaseRefused(path, `is gone, but its log ${path}-wal is still there`)
  const draft = `${path}.new`
  for (const rest of [draft, `${draft}-wal`, `${draft}-shm`, `${path}-wal`, `${path}-shm`])
    rmSync(rest, { force: true })
  closeSync(openSync(draft, 'wx', 0o600))
  const connection = await SqliteConnection.open(draft)
  try {
    connection.instance.pragma(`application_id = ${APPLICATION_ID}`)
  } finally {
    await connection.close()
  }
  const handle = openSync(draft, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(draft, path)
  syncFolder(dirname(path))
}

function refuseForeign(path: string): void {
  const { size, mode } = statSync(path)
  if (size === 0) throw new DatabaseRefused(path, 'is empty (0 bytes)')
  const head = Buffer.alloc(HEADER.length)
  const handle = openSync(path, 'r')
  try {
    readSync(handle, head, 0, head.length, 0)
  } finally {
    closeSync(handle)
  }
  if (head.toString('latin1') !== HEADER) throw new DatabaseRefused(path, 'is not an SQLite database')
  // The engine gives its -wal and -shm files the same mode.
  if ((mode & 0o077) !== 0) chmodSync(path, 0o600)
}
