import { execFile } from 'node:child_process'
import { link, mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import { confine, entryPath } from '../../../core/files/confine.ts'
import { openConfined } from '../../../core/files/open.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

/** A root with a file in it, and a secret beside it. */
async function world() {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'svc-confine-')))
  folders.push(base)
  const root = join(base, 'root')
  await mkdir(join(root, 'sub'), { recursive: true })
  await writeFile(join(root, 'file.txt'), 'inside')
  await writeFile(join(root, 'sub', 'deep.txt'), 'deep')
  await writeFile(join(base, 'secret'), 'outside')
  return { base, root, secret: join(base, 'secret') }
}
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof Refusal) return error.code
      throw error
    },
  )

const hostile: readonly string[] = [
  '',
  '.',
  '..',
  './file.txt',
  '../secret',
  'sub/../../secret',
  'sub/..',
  'sub/./deep.txt',
  '/etc/passwd',
  '//etc/passwd',
  '///file.txt',
  'sub//deep.txt',
  'sub/',
  '/',
  '..\\secret',
  'sub\\deep.txt',
  '\\\\server\\share',
  'C:\\windows',
  'c:file.txt',
  'C:/windows',
  '~',
  '~/secret',
  '~root/x',
  '%2e%2e/secret',
  '..%2fsecret',
  '%2e%2e%2fsecret',
  'file%00.txt',
  '..%5csecret',
  'file.txt\0.png',
  '\0',
  'a\nb',
  'a\u007fb',
  'a\u0085b',
  'line\u2028end',
  'CON',
  'nul.txt',
  'sub/COM1',
  'lpt9.log',
  'aux',
  'file.txt.',
  'file.txt ',
  'sub /deep.txt',
  '...',
  'file.txt::$DATA',
  'e\u0301.txt',
  '\ud800.txt',
  'x'.repeat(256),
  'ü'.repeat(128),
  'sub/'.repeat(300) + 'x',
]
const legal: readonly string[] = [
  'file.txt',
  'sub/deep.txt',
  'new.txt',
  'new/folder/file',
  'größe 👋.md',
  'two  spaces.txt',
  'a.b..c',
  '.hidden',
  '100% sure',
  '日本/語.txt',
  'x'.repeat(255),
  'console.log',
  'common',
]

describe('names', () => {
  it('there are at least forty hostile ones', () => {
    expect(hostile.length).toBeGreaterThanOrEqual(40)
  })

  it.each(hostile.map((name) => [JSON.stringify(name).slice(0, 60), name] as const))(
    '%s is refused',
    async (_, name) => {
      const { root, secret } = await world()
      expect(await codeOf(confine(root, name))).toBe('invalid_request')
      expect(await codeOf(openConfined(root, name, 'write'))).toBe('invalid_request')
      expect(await readFile(secret, 'utf8')).toBe('outside')
    },
  )

  it.each(legal.map((name) => [name.slice(0, 60), name] as const))('%s is a path below the root', async (_, name) => {
    const { root } = await world()
    expect(await confine(root, name)).toBe(join(root, name))
  })

  it('a refusal says nothing of the root', async () => {
    const { root, base } = await world()
    const error = await confine(root, '../secret').then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(String(error)).not.toContain(base)
  })
})

describe('what a name leads to', () => {
  it.each(['link to a file outside', 'link to a file inside', 'link to a folder', 'dangling link'])(
    'a %s is forbidden',
    async (kind) => {
      const { base, root, secret } = await world()
      const targets: Record<string, string> = {
        'link to a file outside': secret,
        'link to a file inside': join(root, 'file.txt'),
        'link to a folder': base,
        'dangling link': join(base, 'nothing'),
      }
      await symlink(targets[kind] ?? '', join(root, 'way'))
      expect(await codeOf(confine(root, 'way'))).toBe('forbidden')
      expect(await codeOf(confine(root, 'way/secret'))).toBe('forbidden')
      expect(await codeOf(openConfined(root, 'way', 'read'))).toBe('forbidden')
    },
  )

  it('a hard-linked file is forbidden', async () => {
    const { root, secret } = await world()
    await link(secret, join(root, 'hard'))
    expect(await codeOf(confine(root, 'hard'))).toBe('forbidden')
    expect(await codeOf(openConfined(root, 'hard', 'write'))).toBe('forbidden')
  })

  it('a pipe is forbidden and holds nobody', async () => {
    const { root } = await world()
    await promisify(execFile)('mkfifo', [join(root, 'pipe')])
    expect(await codeOf(confine(root, 'pipe'))).toBe('forbidden')
    expect(await codeOf(openConfined(root, 'pipe', 'read'))).toBe('forbidden')
  })

  it('a file used as a folder is forbidden', async () => {
    const { root } = await world()
    expect(await codeOf(confine(root, 'file.txt/x'))).toBe('forbidden')
  })

  it('denied paths are forbidden, with all that is below them', async () => {
    const { root } = await world()
    const denied = [join(root, 'sub'), join(root, 'not-there')]
    expect(await codeOf(confine(root, 'sub/deep.txt', { denied }))).toBe('forbidden')
    expect(await codeOf(confine(root, 'not-there', { denied }))).toBe('forbidden')
    expect(await codeOf(confine(root, 'subtle', { denied }))).toBe('accepted')
  })

  it('a root that is itself reached by a link works', async () => {
    const { base, root } = await world()
    await symlink(root, join(base, 'alias'))
    expect(await confine(join(base, 'alias'), 'file.txt')).toBe(join(root, 'file.txt'))
  })
})

describe('opening', () => {
  it('reads and writes plain files', async () => {
    const { root } = await world()
    const reader = await openConfined(root, 'sub/deep.txt', 'read')
    expect(await reader.readFile('utf8')).toBe('deep')
    await reader.close()
    const writer = await openConfined(root, 'fresh.txt', 'write')
    await writer.writeFile('made')
    await writer.close()
    expect(await readFile(join(root, 'fresh.txt'), 'utf8')).toBe('made')
  })

  it('never reads outside while a folder is swapped for a link all the time', async () => {
    const { base, root } = await world()
    await mkdir(join(base, 'evil'))
    await writeFile(join(base, 'evil', 'deep.txt'), 'outside')
    await symlink(join(base, 'evil'), join(base, 'trap'))
    const loop = { going: true }
    const swapping = (async () => {
      while (loop.going) {
        await rename(join(root, 'sub'), join(base, 'parked'))
        await rename(join(base, 'trap'), join(root, 'sub'))
        await rename(join(root, 'sub'), join(base, 'trap'))
        await rename(join(base, 'parked'), join(root, 'sub'))
        for (let rest = 0; rest < 12; rest++)
          await new Promise((resolve) => {
            setImmediate(resolve)
          })
      }
    })()
    const seen = new Set<string>()
    for (let n = 0; n < 4_000 && (n < 400 || seen.size === 0); n++) {
      const handle = await openConfined(root, 'sub/deep.txt', 'read').catch(() => undefined)
      if (!handle) continue
      seen.add(await handle.readFile('utf8'))
      await handle.close()
    }
    loop.going = false
    await swapping
    expect([...seen]).toEqual(['deep'])
  })
})

it('the path of an entry of a folder is never another one', () => {
  expect(entryPath('/home/ada', 'notes')).toBe('/home/ada/notes')
  for (const name of [...hostile, 'one/two']) expect(() => entryPath('/home/ada', name), name).toThrow(Refusal)
})
