import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { copyPlain, plainFiles } from '../../../plugins/backups/contents.ts'
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
