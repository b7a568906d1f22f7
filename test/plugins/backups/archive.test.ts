import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ArchiveWriter } from '../../../plugins/backups/archive.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-archive-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('an archive that is being written', () => {
  it('has every byte of every file, also while the one before is still being compressed', async () => {
    const contents = Array.from({ length: 60 }, (_, index) => randomBytes(index % 3 === 0 ? 1_500_000 : 10 + index))
    await Promise.all(contents.map((bytes, index) => writeFile(join(folder, `file-${index}`), bytes)))
    const archive = await ArchiveWriter.create(join(folder, 'all.zip'))
    for (const index of contents.keys()) await archive.addFile(join(folder, `file-${index}`), `data/file-${index}`)
    const { files } = await archive.end({ version: 1 } as never, Buffer.alloc(32), {} as never)
    expect(files.slice(0, 60).map(({ size, sha256 }) => [size, sha256])).toEqual(
      contents.map((bytes) => [bytes.length, createHash('sha256').update(bytes).digest('hex')]),
    )
  })

  it('fails, and nothing else does, when a file shrinks while it is read', async () => {
    const file = join(folder, 'shrinking')
    await writeFile(file, randomBytes(4_000_000))
    const archive = await ArchiveWriter.create(join(folder, 'half.zip'))
    const adding = (async () => {
      for (let round = 0; round < 50; round++) {
        const added = archive.addFile(file, `data/${round}`)
        await truncate(file, 4_000_000 - (round + 1) * 70_000)
        await added
      }
      await archive.end({ version: 1 } as never, Buffer.alloc(32), {} as never)
    })()
    await expect(adding).rejects.toThrow(/number of bytes|changed/)
  })
})
