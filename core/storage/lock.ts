import { randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import Sqlite from 'better-sqlite3'
import * as v from 'valibot'
import { makeFolder } from './make-folder.ts'
import { codeOf, isBusy } from './failure.ts'

/** Another daemon serves this home. */
export class HomeInUse extends Error {
  override readonly name = 'HomeInUse'
  readonly pid: number
  /** Where it listens; `undefined` while it starts. */
  readonly address: string | undefined
  constructor(home: string, pid: number, address: string | undefined) {
    super(
      `another svc (process ${pid}${address ? `, ${address}` : ''}) already uses ${home}; ` +
        'stop it or choose another home with --home',
    )
    this.pid = pid
    this.address = address
  }
}

/** Held until disposed, or until the process is gone, however it went. */
export interface HomeLock extends Disposable {
  /** Whoever held it last had published an address and never let go: it was killed, or the machine went down. */
  readonly afterCrash: boolean
  /** Writes where the daemon listens to `<home>/daemon.json`, for the command line, and the pass of this home. */
  publish(address: string): void
  /** Whether whoever presents this text can read the home, so that strangers at the same address are none of theirs. */
  isPass(text: string): boolean
}

const DaemonFile = v.object({
  pid: v.pipe(v.number(), v.integer()),
  listen_addr: v.string(),
  started_at: v.string(),
  /** Absent in an earlier version. */
  pass: v.optional(v.string()),
})
const PASS_BYTES = 32

/**
 * Takes `<home>/daemon.lock`: an SQLite file with an open write transaction, so the operating system holds the lock and
 * drops it with the process. The holder's pid is in the file's header, where others can read it. Throws `HomeInUse`.
 */
export async function lockHome(home: string): Promise<HomeLock> {
  makeFolder(home)
  const db = take(home)
  const published = join(home, 'daemon.json')
  const afterCrash = existsSync(published)
  rmSync(published, { force: true })
  const startedAt = new Date().toISOString()
  let held = true
  const pass = randomBytes(PASS_BYTES)
  return {
    afterCrash,
    publish(address) {
      const draft = `${published}.new`
      const about = { pid: process.pid, listen_addr: address, started_at: startedAt, pass: pass.toString('base64url') }
      writeFileSync(draft, `${JSON.stringify(about)}\n`, { mode: 0o600 })
      renameSync(draft, published)
    },
    isPass(text) {
      const given = Buffer.from(text, 'base64url')
      return given.length === pass.length && timingSafeEqual(given, pass)
    },
    [Symbol.dispose]() {
      if (!held) return
      held = false
      rmSync(published, { force: true })
      db.close()
    },
  }
}

/** What the running daemon wrote to `<home>/daemon.json`. */
export interface RunningDaemon {
  readonly pid: number
  readonly listenAddr: string
  readonly startedAt: string
  /** Shows the daemon that a request comes from somebody who can read its home; it permits nothing. */
  readonly pass: string | undefined
}

/** `undefined` when there is none, or the file is half written or stale. */
export function readDaemonFile(home: string): RunningDaemon | undefined {
  let text: string
  try {
    text = readFileSync(join(home, 'daemon.json'), 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), DaemonFile), text)
  if (!parsed.success || !isAlive(parsed.output.pid)) return undefined
  const { pid, listen_addr: listenAddr, started_at: startedAt, pass } = parsed.output
  return { pid, listenAddr, startedAt, pass }
}

function take(home: string): BetterSqlite3.Database {
  const file = join(home, 'daemon.lock')
  try {
    return begin(home, file)
  } catch (error) {
    const code = codeOf(error)
    // Nothing is kept in it, so one that lost power half written is made anew. Nobody can hold a lock on it either.
    if (code !== 'SQLITE_NOTADB' && !code.startsWith('SQLITE_CORRUPT')) throw error
    rmSync(file, { force: true })
    return begin(home, file)
  }
}

function begin(home: string, file: string): BetterSqlite3.Database {
  writeFileSync(file, '', { flag: 'a', mode: 0o600 })
  const db = new Sqlite(file, { timeout: 50 })
  try {
    db.pragma('synchronous = OFF')
    // Twice, because only what is committed can be read by others. Whoever gets in between wins, and we stop.
    db.exec('BEGIN IMMEDIATE')
    db.pragma(`user_version = ${process.pid}`)
    db.exec('COMMIT')
    db.exec('BEGIN IMMEDIATE')
    return db
  } catch (error) {
    try {
      if (!isBusy(codeOf(error))) throw error
      const pid = Number(db.pragma('user_version', { simple: true }))
      const other = readDaemonFile(home)
      throw new HomeInUse(home, pid, other?.pid === pid ? other.listenAddr : undefined)
    } finally {
      db.close()
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}
