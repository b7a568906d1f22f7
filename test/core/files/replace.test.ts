import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { replaceConfined } from '../../../core/files/replace.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-test-'))
})
afterEach(async () => {
  await rm(root, { recursive: true, force: true })
})

it('makes a file with its folders, and says whether it is new', async () => {
  expect(await replaceConfined(root, 'a/b/c.txt', 'one')).toEqual({ created: true })
  expect(await replaceConfined(root, 'a/b/c.txt', new Uint8Array([116, 119, 111]))).toEqual({ created: false })
  expect(await readFile(join(root, 'a/b/c.txt'), 'utf8')).toBe('two')
  expect((await stat(join(root, 'a/b/c.txt'))).mode & 0o077).toBe(0)
  expect(await readdir(join(root, 'a/b'))).toEqual(['c.txt'])
})

it('a reader finds the old bytes or the new ones, never a part', async () => {
  await replaceConfined(root, 'busy', '0'.repeat(100_000))
  const written = new AbortController()
  const reads = (async () => {
    const seen = new Set<string>()
    while (!written.signal.aborted) seen.add([...new Set(await readFile(join(root, 'busy'), 'utf8'))].join(''))
    return seen
  })()
  for (let round = 1; round < 10; round++) await replaceConfined(root, 'busy', String(round).repeat(100_000))
  written.abort()
  expect([...(await reads)].every((signs) => signs.length === 1)).toBe(true)
})

it.each([
  [
    'a link',
    async () => {
      await symlink('/etc/hostname', join(root, 'x'))
      return 'x'
    },
  ],
  [
    'a file in a folder that is a link',
    async () => {
      await symlink(tmpdir(), join(root, 'out'))
      return 'out/x'
    },
  ],
  [
    'a folder',
    async () => {
      await mkdir(join(root, 'x'))
      return 'x'
    },
  ],
  [
    'a file below a file',
    async () => {
      await writeFile(join(root, 'x'), '')
      return 'x/y'
    },
  ],
])('%s is refused, and nothing is left', async (_, prepare) => {
  const name = await prepare()
  const before = await readdir(root)
  await expect(replaceConfined(root, name, 'new')).rejects.toMatchObject({ code: 'forbidden' })
  expect(await readdir(root)).toEqual(before)
})

it('a name that leads out is refused', async () => {
  await expect(replaceConfined(root, '../out.txt', 'x')).rejects.toMatchObject({ code: 'invalid_request' })
})
