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
/** Checked, unpacked beside the data and on disk; nothing has changed yet. */
export interface Staged {
  readonly manifest: Manifest
  readonly files: number
  readonly plan: SwapPlan
  discard(): Promise<void>
}

/** Checks all of an archive, then unpacks it beside the data. Throws `invalid_request` and leaves nothing behind. */
export async function stageRestore(
  databaseSnapshots: DatabaseSnapshots,
  limits: ArchiveLimits,
  { file, passphrase, id, at, signal }: RestoreOptions,
): Promise<Staged> {
  const database = databaseSnapshots.databaseName()
  const { dataDir, homeDir } = databaseSnapshots
  if ((await stat(dirname(dataDir))).dev !== (await stat(existsSync(dataDir) ? dataDir : dirname(dataDir))).dev) {
    throw new Refusal(
      'conflict',
      `${dataDir} is a file system of its own, so another folder cannot take its place: mount the home instead`,
    )
  }
  using archive = await OpenedArchive.open(file, limits)
  const unsealed =
    passphrase === undefined
      ? undefined
      : await databaseSnapshots.unsealKey(await sealedKey(archive), passphrase, PURPOSE)
  const key = unsealed?.derived ?? (await databaseSnapshots.deriveKey(PURPOSE))
  if (!key)
    throw new Refusal(
      'conflict',
      `This installation has no vault key, so it cannot tell whether the backup is genuine. Put vault.key of the old one into ${homeDir}, or give the passphrase the backup was made with`,
    )
  const manifest = await archive.check(key, signal)
  if (manifest.database !== database)
    throw new Refusal(
      'conflict',
      `The backup has its database as ${manifest.database}, this installation as ${database}: set database_url to that name first`,
    )
  const contents = manifest.files.filter(({ name }) => name.startsWith(DATA))
  if (!contents.some(({ name }) => name === DATA + database))
    throw new Refusal('invalid_request', 'This archive is refused: it has no database')
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
    const damage = await databaseSnapshots.checkFile(join(staging, database))
    if (damage !== undefined)
      throw new Refusal('invalid_request', `This archive is refused: its database is damaged (${damage})`)
    // Reading leaves an empty log behind.
    for (const rest of ['-wal', '-shm']) await rm(join(staging, database + rest), { force: true })
    const keep = (name: string): string => join(homeDir, `${name}.before-restore-${id}`)
    const moves: SwapPlan['moves'] = [{ from: staging, to: dataDir, keep: `${dataDir}.before-restore-${id}` }]
    const anchor = manifest.files.find(({ name }) => name === ANCHOR)
    if (anchor) await unpack(archive, anchor, home, 'audit.anchor')
    moves.push({
      from: anchor ? join(home, 'audit.anchor') : null,
      to: join(homeDir, 'audit.anchor'),
      keep: keep('audit.anchor'),
    })
    if (unsealed) {
      await writeFile(join(home, 'vault.key'), unsealed.keyFile, { mode: 0o600, flush: true })
      moves.push({ from: join(home, 'vault.key'), to: join(homeDir, 'vault.key'), keep: keep('vault.key') })
    }
    for (const folder of [staging, home, dirname(staging), homeDir]) await syncFolder(folder)
    return {
      manifest,
      files: contents.length,
      discard,
      plan: {
        id,
        planned_at: at,
        facts: { what: `backup ${basename(file)} of ${manifest.created_at}` },
        moves: anchor || existsSync(join(homeDir, 'audit.anchor')) ? moves : moves.filter(({ from }) => from !== null),
      },
    }
  } catch (error) {
    await discard()
    throw error
  }
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

/** Removes folders of restores that never came to pass, and what was set aside by earlier ones than the newest. */
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
