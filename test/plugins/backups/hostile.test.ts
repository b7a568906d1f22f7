import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ZipFile } from 'yazl'
import { Refusal } from '../../../core/errors/error.ts'
import type { DatabaseSnapshots } from '../../../core/host/database-snapshots.ts'
import { checkFile } from '../../../core/storage/check-file.ts'
import { codeOf } from '../../../plugins/backups/archive.ts'
import { OpenedArchive } from '../../../plugins/backups/opened.ts'
import { stageRestore } from '../../../plugins/backups/restoring.ts'
import { unpack, writeArchive, writeZip } from './archives.ts'

const key = randomBytes(32)
const limits = { maxFiles: 20, maxBytes: 4_000_000 }
let home: string
let database: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-hostile-'))
  await mkdir(join(home, 'data'))
  writeFileSync(join(home, 'data', 'mine.txt'), 'mine')
  const db = new Sqlite(join(home, 'made.db'))
  db.exec('CREATE TABLE thing (id INTEGER)')
  db.close()
  database = readFileSync(join(home, 'made.db'), 'latin1')
  await rm(join(home, 'made.db'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const databaseSnapshots = (): DatabaseSnapshots => ({
  homeDir: home,
  dataDir: join(home, 'data'),
  databaseName: () => 'svc.db',
  snapshot: () => Promise.reject(new Error('not here')),
  checkFile,
  deriveKey: async () => key,
  sealKey: () => Promise.reject(new Error('not here')),
  unsealKey: () => Promise.reject(new Error('not here')),
  planSwap() {
    throw new Error('not here')
  },
  completedSwap: () => undefined,
  forgetSwap() {
    /* nothing to forget */
  },
})
async function restore(file: string): Promise<string> {
  try {
    await stageRestore(databaseSnapshots(), limits, { file, id: 'x', at: '2026-01-01T00:00:00.000Z' })
    return 'staged'
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'invalid_request') throw error
    expect(
      readdirSync(home, { recursive: true })
        .filter((name) => String(name).startsWith('data'))
        .toSorted(),
      'nothing is left behind',
    ).toEqual(['data', 'data/mine.txt'])
    return error.message
  }
}
/** An archive with a manifest that is genuine: what a thief of the key, or a bug of ours, could make. */
async function forged(
  fill: (zip: ZipFile) => void,
  files: readonly { name: string; text: string; size?: number }[],
): Promise<string> {
  const file = join(home, 'forged.zip')
  const head = {
    format: 'svc-backup-1',
    created_at: '2026-01-01T00:00:00.000Z',
    svc_version: '0.1.0',
    components: ['data'],
  }
  const bytes = Buffer.from(
    JSON.stringify({
      ...head,
      database: 'svc.db',
      skipped: [],
      files: files.map(({ name, text, size }) => ({
        name,
        size: size ?? Buffer.byteLength(text, 'latin1'),
        sha256: createHash('sha256').update(Buffer.from(text, 'latin1')).digest('hex'),
      })),
    }),
  )
  await writeZip(file, (zip) => {
    fill(zip)
    zip.addBuffer(bytes, 'manifest.json', { mode: 0o100600 })
    zip.addBuffer(Buffer.from(codeOf(key, bytes).toString('hex')), 'manifest.hmac', { mode: 0o100600 })
  })
  return file
}
const add = (zip: ZipFile, name: string, text: string, mode = 0o100600): void => {
  zip.addBuffer(Buffer.from(text, 'latin1'), name, { mode })
}
/** Changes a text wherever it stands in the file, to one of the same length. */
function patch(file: string, from: string, to: string): void {
  expect(to.length).toBe(from.length)
  const text = readFileSync(file, 'latin1')
  expect(text).toContain(from)
  writeFileSync(file, text.replaceAll(from, to), 'latin1')
}

describe('zip-slip / hostile archive', () => {
  it('a sound archive is staged', async () => {
    const file = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, 'data/workspaces/a/note.txt', 'hi')
      },
      [
        { name: 'data/svc.db', text: database },
        { name: 'data/workspaces/a/note.txt', text: 'hi' },
      ],
    )
    expect(await restore(file)).toBe('staged')
    expect(readFileSync(join(home, 'data.restore-x', 'workspaces', 'a', 'note.txt'), 'utf8')).toBe('hi')
  })

  it.each([
    ['../../outside.txt'],
    ['/etc/outside.txt.'],
    ['data/../../out.tx'],
    ['data/./x/out.txt.'],
    ['C:\\outside.txt...'],
    ['data\\..\\out.txt..'],
  ])('Zip-slip / hostile archive: a file that leads out by its name (%s) is refused', async (name) => {
    const harmless = 'data/'.padEnd(name.length, 'h')
    const file = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, harmless, 'x')
      },
      [
        { name: 'data/svc.db', text: database },
        { name, text: 'x' },
      ],
    )
    patch(file, harmless, name)
    expect(await restore(file)).not.toBe('staged')
    expect(existsSync(join(home, '..', 'outside.txt'))).toBe(false)
  })

  it.each([
    ['a symbolic link', 0o120777],
    ['a device', 0o060600],
    ['a pipe', 0o010600],
    ['a socket', 0o140600],
    ['something without a kind', 0o600],
  ])('%s is refused', async (_, mode) => {
    const file = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, 'data/link', '/etc/passwd', mode)
      },
      [
        { name: 'data/svc.db', text: database },
        { name: 'data/link', text: '/etc/passwd' },
      ],
    )
    expect(await restore(file)).toMatch(/link, a device or another special file/)
  })

  it('a folder is refused, and a name that is in it twice', async () => {
    const folder = await forged((zip) => {
      zip.addEmptyDirectory('data/empty')
    }, [])
    expect(await restore(folder)).toMatch(/not the name of a file/)
    const twice = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, 'data/aa', 'x')
        add(zip, 'data/ab', 'y')
      },
      [
        { name: 'data/svc.db', text: database },
        { name: 'data/aa', text: 'x' },
      ],
    )
    patch(twice, 'data/ab', 'data/aa')
    expect(await restore(twice)).toMatch(/twice/)
  })

  it('a file in the place of a folder is refused', async () => {
    const file = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, 'data/a', 'x')
        add(zip, 'data/a/b', 'y')
      },
      [
        { name: 'data/svc.db', text: database },
        { name: 'data/a', text: 'x' },
        { name: 'data/a/b', text: 'y' },
      ],
    )
    await expect(restore(file)).resolves.not.toBe('staged')
  })

  it('a file the manifest does not know is refused, and one that is missing', async () => {
    expect(
      await restore(
        await forged(
          (zip) => {
            add(zip, 'data/svc.db', database)
            add(zip, 'data/foreign', 'x')
          },
          [{ name: 'data/svc.db', text: database }],
        ),
      ),
    ).toMatch(/"data\/foreign", which its manifest does not know/)
    expect(
      await restore(
        await forged(
          (zip) => {
            add(zip, 'data/svc.db', database)
          },
          [
            { name: 'data/svc.db', text: database },
            { name: 'data/gone', text: 'x' },
          ],
        ),
      ),
    ).toMatch(/"data\/gone" is missing/)
  })

  it('a bomb is refused by what it says and by what it holds', async () => {
    const zeros = '\0'.repeat(5_000_000)
    const said = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, 'data/zeros', zeros)
      },
      [
        { name: 'data/svc.db', text: database },
        { name: 'data/zeros', text: zeros },
      ],
    )
    expect(await restore(said)).toMatch(/unpacks to more than the 4000000 bytes/)
    // The table of contents says less than there is.
    const hidden = await forged(
      (zip) => {
        add(zip, 'data/svc.db', database)
        add(zip, 'data/zeros', zeros)
      },
      [
        { name: 'data/svc.db', text: database },
        { name: 'data/zeros', text: zeros, size: 1_000 },
      ],
    )
    const size = Buffer.alloc(4)
    size.writeUInt32LE(5_000_000)
    const small = Buffer.alloc(4)
    small.writeUInt32LE(1_000)
    patch(hidden, size.toString('latin1'), small.toString('latin1'))
    expect(await restore(hidden)).toMatch(/^This archive is refused/)
    const many = await forged((zip) => {
      for (let n = 0; n < 30; n++) add(zip, `data/${n}`, 'x')
    }, [])
    expect(await restore(many)).toMatch(/20 are allowed/)
  })

  it.each(['', 'not a zip file at all', 'PK\u0003\u0004'.repeat(100)])(
    'what is no archive (%s) is refused',
    async (text) => {
      writeFileSync(join(home, 'x.zip'), text)
      expect(await restore(join(home, 'x.zip'))).toMatch(/^This archive is refused/)
    },
  )

  it('one cut off anywhere is refused', async () => {
    const file = join(home, 'cut.zip')
    await writeArchive(file, key, { 'data/svc.db': 'x'.repeat(3_000) })
    const whole = readFileSync(file)
    for (let end = 1; end < whole.length; end += 37) {
      writeFileSync(file, whole.subarray(0, end))
      expect(await restore(file), `cut at ${end}`).toMatch(/^This archive is refused/)
    }
  })
})

describe('hostile restore', () => {
  it('an archive of somebody without the key is refused before anything is unpacked', async () => {
    const file = join(home, 'other.zip')
    await writeArchive(file, randomBytes(32), { 'data/svc.db': database })
    expect(await restore(file)).toMatch(/made by another installation, or was changed since/)
  })

  it('one with another content under the old code is refused', async () => {
    const file = join(home, 'changed.zip')
    await writeArchive(file, key, { 'data/svc.db': 'x', 'data/workspaces/a/note': 'pay one' })
    const contents = await unpack(file)
    await writeZip(join(home, 'made.zip'), (zip) => {
      for (const [name, bytes] of contents)
        zip.addBuffer(name.endsWith('note') ? Buffer.from('pay ten') : bytes, name, { mode: 0o100600 })
    })
    expect(await restore(join(home, 'made.zip'))).toMatch(/"data\/workspaces\/a\/note" differs from its manifest/)
    await writeZip(join(home, 'bare.zip'), (zip) => {
      for (const [name, bytes] of contents) if (name !== 'manifest.hmac') zip.addBuffer(bytes, name, { mode: 0o100600 })
    })
    expect(await restore(join(home, 'bare.zip'))).toMatch(/no manifest.hmac/)
  })

  it('one with a damaged database, or with none, is refused', async () => {
    const damaged = `${database.slice(0, 4_096)}${'\u00ff'.repeat(database.length - 4_096)}`
    expect(
      await restore(
        await forged(
          (zip) => {
            add(zip, 'data/svc.db', damaged)
          },
          [{ name: 'data/svc.db', text: damaged }],
        ),
      ),
    ).toMatch(/database is damaged/)
    expect(
      await restore(
        await forged(
          (zip) => {
            add(zip, 'data/x', 'x')
          },
          [{ name: 'data/x', text: 'x' }],
        ),
      ),
    ).toMatch(/no database/)
  })

  it('reading an archive stops when nobody waits for it', async () => {
    const file = join(home, 'sound.zip')
    await writeArchive(file, key, { 'data/svc.db': database })
    using archive = await OpenedArchive.open(file, limits)
    await expect(archive.check(key, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
    expect((await archive.check(key)).files.map(({ name }) => name)).toContain('data/svc.db')
  })
})
