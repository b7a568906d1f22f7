import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { keepChunks } from '../../../core/build/keep.ts'

test('only chunks that a running daemon may still import outlive a new build, for a week', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-keep-'))
  const [old, fresh] = [join(folder, 'old'), join(folder, 'fresh')]
  const write = async (root: string, file: string, daysAgo = 0): Promise<void> => {
    await mkdir(dirname(join(root, file)), { recursive: true })
    await writeFile(join(root, file), root)
    const seconds = Date.now() / 1000 - daysAgo * 86_400
    await utimes(join(root, file), seconds, seconds)
  }
  try {
    for (const file of [
      'core/client-Ab_3-xYz.js',
      'plugins/kv/tools-12345678.js',
      'core/same-abcdefgh.js',
      'svc.js',
      'plugins/gone/index.js',
      'webchat/assets/index-73KytSJx.js',
    ])
      await write(old, file)
    await write(old, 'core/ancient-abcdefgh.js', 8)
    for (const file of ['core/same-abcdefgh.js', 'svc.js']) await write(fresh, file)
    await keepChunks(old, fresh, Date.now())
    const files = (await readdir(fresh, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name)
      .sort()
    expect(files).toEqual(['.npmignore', 'client-Ab_3-xYz.js', 'same-abcdefgh.js', 'svc.js', 'tools-12345678.js'])
    expect(await readFile(join(fresh, 'core/same-abcdefgh.js'), 'utf8')).toBe(fresh)
    const ignored = (await readFile(join(fresh, '.npmignore'), 'utf8')).trim().split('\n')
    expect(ignored.sort()).toEqual(['/core/client-Ab_3-xYz.js', '/plugins/kv/tools-12345678.js'])
    await keepChunks(join(folder, 'none'), fresh, Date.now())
  } finally {
    await rm(folder, { recursive: true })
  }
})
