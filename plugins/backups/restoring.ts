import { existsSync } from 'node:fs'
import { mkdir, open, readdir, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { confine } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { DatabaseSnapshots, SwapPlan } from 'svc/internal'
import { PURPOSE } from './archive.ts'
import { syncFolder } from './folder.ts'
import { ANCHOR, DATA, SEALED_KEY } from './making.ts'
import { OpenedArchive } from './opened.ts'
import type { ArchiveLimits } from './opened.ts'
import type { FileEntry, Manifest } from './schema.ts'

export interface RestoreOptions {
  readonly file: string
  readonly passphrase?: string | undefined
  readonly id: string
  readonly at: string
  readonly signal?: AbortSignal
}
/** Verified, unpacked beside the data and on disk; nothing has changed yet. */
export interface Staged {
  readonly manifest: Manifest
  readonly files: number
  readonly plan: SwapPlan
  discard(): Promise<void>
}

/** Verifies an archive, then unpacks it beside the data. Throws `invalid_request` and leaves nothing behind. */
export async function stageRestore(
  databaseSnapshots: DatabaseSnapshots,
  limits: ArchiveLimits,
  { file, passphrase, id, at, signal }: RestoreOptions,
): Promise<Staged> {
  const { dataDir, homeDir } = databaseSnapshots
  await requireSameFileSystem(dataDir)
  using archive = await OpenedArchive.open(file, limits)
  const unsealed =
    passphrase === undefined
      ? undefined
      : await databaseSnapshots.unsealKey(await sealedKey(archive), passphrase, PURPOSE)
  const key = unsealed?.derived ?? (await databaseSnapshots.deriveKey(PURPOSE))
  if (!key)
    throw new Refusal(
      'conflict',
      'This installation has no vault key, so it cannot verify the backup. ' +
        `Put vault.key of the old one into ${homeDir}, or give the passphrase the backup was made with`,
    )
  const manifest = await archive.check(key, signal)
  const contents = dataFiles(manifest, databaseSnapshots.databaseName())
  await requireRoom(dirname(dataDir), contents)

  const staging = `${dataDir}.restore-${id}`
  const home = join(homeDir, `.restore-${id}`)
  const discard = async (): Promise<void> => {
    for (const folder of [staging, home]) await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const folder of [staging, home]) await mkdir(folder, { mode: 0o700 })
    for (const entry of contents) {
      signal?.throwIfAborted()
      await unpack(archive, entry, staging, entry.name.slice(DATA.length))
    }
    await checkDatabase(databaseSnapshots, staging)
    const anchor = manifest.files.find(({ name }) => name === ANCHOR)
    if (anchor) await unpack(archive, anchor, home, 'audit.anchor')
    if (unsealed) await writeFile(join(home, 'vault.key'), unsealed.keyFile, { mode: 0o600, flush: true })
    for (const folder of [staging, home, dirname(staging), homeDir]) await syncFolder(folder)
    const moves = planMoves(databaseSnapshots, id, { anchor: anchor !== undefined, key: unsealed !== undefined })
    const facts = { what: `backup ${basename(file)} of ${manifest.created_at}` }
    return { manifest, files: contents.length, discard, plan: { id, planned_at: at, facts, moves } }
  } catch (error) {
    await discard()
    throw error
  }
}

/** Throws `conflict` when the data folder cannot be renamed. */
async function requireSameFileSystem(dataDir: string): Promise<void> {
  const parent = dirname(dataDir)
  if ((await stat(parent)).dev !== (await stat(existsSync(dataDir) ? dataDir : parent)).dev)
    throw new Refusal(
      'conflict',
      `${dataDir} is a file system of its own, so another folder cannot take its place: mount the home instead`,
    )
}

/** The files of the data folder. Throws unless one of them is the database of this installation. */
function dataFiles(manifest: Manifest, database: string): readonly FileEntry[] {
  if (manifest.database !== database)
    throw new Refusal(
      'conflict',
      `The backup has its database as ${manifest.database}, this installation as ${database}: ` +
        'set database_url to that name first',
    )
  const files = manifest.files.filter(({ name }) => name.startsWith(DATA))
  if (!files.some(({ name }) => name === DATA + database))
    throw new Refusal('invalid_request', 'This archive is refused: it has no database')
  return files
}

async function checkDatabase(databaseSnapshots: DatabaseSnapshots, staging: string): Promise<void> {
  const path = join(staging, databaseSnapshots.databaseName())
  const damage = await databaseSnapshots.checkFile(path)
  if (damage !== undefined)
    throw new Refusal('invalid_request', `This archive is refused: its database is damaged (${damage})`)
  // The check leaves an empty write-ahead log behind.
  for (const suffix of ['-wal', '-shm']) await rm(path + suffix, { force: true })
}

/** The renames that put the unpacked files into place. An archive without an anchor removes the existing one. */
function planMoves(
  { dataDir, homeDir }: DatabaseSnapshots,
  id: string,
  has: { readonly anchor: boolean; readonly key: boolean },
): SwapPlan['moves'] {
  const home = join(homeDir, `.restore-${id}`)
  const move = (name: string, from: string | null): SwapPlan['moves'][number] => ({
    from,
    to: join(homeDir, name),
    keep: join(homeDir, `${name}.before-restore-${id}`),
  })
  const moves = [
    { from: `${dataDir}.restore-${id}`, to: dataDir, keep: `${dataDir}.before-restore-${id}` },
  ] as SwapPlan['moves']
  if (has.anchor) moves.push(move('audit.anchor', join(home, 'audit.anchor')))
  else if (existsSync(join(homeDir, 'audit.anchor'))) moves.push(move('audit.anchor', null))
  if (has.key) moves.push(move('vault.key', join(home, 'vault.key')))
  return moves
}

async function sealedKey(archive: OpenedArchive): Promise<string> {
  if (!archive.has(SEALED_KEY))
    throw new Refusal(
      'invalid_request',
      'This backup was made without a passphrase and does not hold the key of the vault',
    )
  return await archive.text(SEALED_KEY)
}

async function requireRoom(folder: string, files: readonly FileEntry[]): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const needed = files.reduce((sum, { size }) => sum + size, 0)
  if (needed > bavail * bsize)
    throw new Refusal('service_unavailable', `The backup unpacks to ${needed} bytes, and ${bavail * bsize} are free`, {
      retryAfterSecs: 60,
    })
}

async function unpack(archive: OpenedArchive, file: FileEntry, root: string, name: string): Promise<void> {
  let handle
  try {
    const path = await confine(root, name)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    handle = await open(path, 'wx', file.executable ? 0o700 : 0o600)
  } catch (error) {
    throw new Refusal('invalid_request', `This archive is refused: "${name}" cannot be put beside the others`, {
      cause: error,
    })
  }
  try {
    for await (const chunk of archive.read(file)) await handle.write(chunk)
    if (file.mtime_ms !== undefined) await handle.utimes(file.mtime_ms / 1000, file.mtime_ms / 1000)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Removes folders of restores that never happened, and those set aside by earlier restores than the newest. */
export async function sweepRestores(
  { dataDir, homeDir }: DatabaseSnapshots,
  pending: string | undefined,
): Promise<void> {
  const parents = [...new Set([dirname(dataDir), homeDir])]
  const names = (
    await Promise.all(
      parents.map(async (parent) => (await readdir(parent)).map((name) => ({ name, path: join(parent, name) }))),
    )
  ).flat()
  const own = [basename(dataDir), 'audit.anchor', 'vault.key']
  const aside = names.filter(({ name }) => own.some((item) => name.startsWith(`${item}.before-restore-`)))
  const newest = aside
    .map(({ name }) => name.slice(name.indexOf('.before-restore-') + 16))
    .toSorted()
    .at(-1)
  for (const { path } of aside.filter(({ name }) => newest === undefined || !name.endsWith(newest)))
    await rm(path, { recursive: true, force: true })
  for (const { name, path } of names) {
    const id = name.startsWith(`${basename(dataDir)}.restore-`)
      ? name.slice(basename(dataDir).length + 9)
      : name.startsWith('.restore-')
        ? name.slice(9)
        : undefined
    if (id !== undefined && id !== pending) await rm(path, { recursive: true, force: true })
  }
}
