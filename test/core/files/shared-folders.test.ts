import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { ArchivedFile } from '../../../core/files/read-archive.ts'
import { SharedFolders } from '../../../core/files/shared-folders.ts'
import type { SharedFolder } from '../../../core/files/shared-folders.ts'

it('the key of the vault is read once for all that is installed: it may be a file, or a command', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-shared-folders-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const [rows, contents] = [new Map<string, SharedFolder>(), new Map<string, readonly ArchivedFile[]>()]
  let reads = 0
  const errors: string[] = []
  const folders = new SharedFolders<{}>({
    what: 'skill',
    home,
    folder: 'skills',
    store: {
      all: async () => [...rows.values()],
      find: async (name) => rows.get(name),
      files: async (name) => contents.get(name) ?? [],
      put(row, files) {
        rows.set(row.name, row)
        contents.set(row.name, files)
        return []
      },
      commit: async () => undefined,
    },
    key: async () => {
      reads++
      return Buffer.from('the key')
    },
    tell: () => [],
    warn: () => undefined,
    log: { error: (text: string) => void errors.push(text), info: () => undefined },
  })
  const names = ['one', 'two', 'three', 'four']
  for (const name of names) await folders.put(name, {}, [{ name: 'SKILL.md', bytes: Buffer.from(name) }], [])
  expect(reads).toBe(names.length)
  for (const name of names) await rm(join(home, 'skills', name), { recursive: true })
  await folders.reconcile()
  expect([reads, errors]).toEqual([names.length + 1, []])
})
