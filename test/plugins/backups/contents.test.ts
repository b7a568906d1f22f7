import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ArchiveWriter } from '../../../plugins/backups/archive.ts'
import { copyPlain, plainFiles } from '../../../plugins/backups/contents.ts'
import { OpenedArchive } from '../../../plugins/backups/opened.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

it('a folder that goes while a backup looks through the data is left out, and so is a file in it', async () => {
  await using folder = await temporaryFolder()
  for (const name of ['a', 'b', 'c']) {
    await mkdir(join(folder.path, name))
    await writeFile(join(folder.path, name, 'file'), name)
  }
  const found: string[] = []
  for await (const name of plainFiles(folder.path, 'svc.db', () => undefined)) {
    found.push(name)
    // An agent is killed, and another one's folder becomes a file.
    await rm(join(folder.path, 'b'), { recursive: true, force: true })
    await rm(join(folder.path, 'a'), { recursive: true, force: true })
    await writeFile(join(folder.path, 'a'), '')
  }
  expect(found).toEqual(['a/file', 'c/file'])
  expect(await copyPlain(folder.path, 'b/file', join(folder.path, 'copy'))).toBeUndefined()
  expect(await copyPlain(folder.path, 'a/file', join(folder.path, 'copy'))).toBeUndefined()
  // The folder of the data itself has to be there.
  await expect(plainFiles(join(folder.path, 'nowhere'), 'svc.db', () => undefined).next()).rejects.toThrow(/ENOENT/)
})

it('small files are read and large ones copied, and both come out of the archive as they were', async () => {
  await using folder = await temporaryFolder()
  await mkdir(join(folder.path, 'data'))
  const files = new Map([0, 1, 65_535, 65_536, 65_537, 300_000].map((size) => [`f${size}`, randomBytes(size)]))
  for (const [name, bytes] of files)
    await writeFile(join(folder.path, 'data', name), bytes, { mode: name === 'f1' ? 0o700 : 0o600 })
  const archive = await ArchiveWriter.create(join(folder.path, 'a.zip'))
  const read: string[] = []
  for await (const name of plainFiles(join(folder.path, 'data'), 'svc.db', () => undefined)) {
    const copied = await copyPlain(join(folder.path, 'data'), name, join(folder.path, 'copy'))
    if (copied?.bytes) {
      read.push(name)
      await archive.addBytes(copied.bytes, name, copied)
    } else await archive.addFile(join(folder.path, 'copy'), name, copied)
  }
  expect(read).toEqual(['f0', 'f1', 'f65535', 'f65536'])
  const manifest = await archive.end(
    { format: 'svc-backup-1', created_at: '2026-01-31T12:00:00.000Z', svc_version: '1', components: ['data'] },
    Buffer.alloc(32),
    { database: 'svc.db', skipped: [] },
  )
  using opened = await OpenedArchive.open(join(folder.path, 'a.zip'), { maxFiles: 100, maxBytes: 10_000_000 })
  await opened.check(Buffer.alloc(32))
  for (const file of manifest.files.filter(({ name }) => files.has(name))) {
    expect([file.name, file.executable ?? false]).toEqual([file.name, file.name === 'f1'])
    const parts: Buffer[] = []
    for await (const part of opened.read(file)) parts.push(part)
    expect(Buffer.concat(parts).equals(files.get(file.name) ?? Buffer.from('none'))).toBe(true)
  }
})
