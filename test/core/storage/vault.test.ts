import { chmod, copyFile, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openVault } from '../../../core/storage/vault-file.ts'
import { engines, open, recorder } from './engines.ts'
import type { EngineName } from './engines.ts'

const CANARY = 'sk-canary-5d1f0c7a9be34e21'
async function start(engine: EngineName) {
  const opened = await open(engine)
  const keyFile = join(opened.dir, 'home', 'vault.key')
  const { log, lines } = recorder()
  const vault = await openVault(opened.database, { file: keyFile }, log)
  return { ...opened, keyFile, vault, lines, again: () => openVault(opened.database, { file: keyFile }, log) }
}

describe.each(engines)('the vault on %s', (engine) => {
  it('gives back what was written, to its own plugin only, also after opening again', async () => {
    const { vault, again } = await start(engine)
    await vault.forPlugin('mail').write('password', CANARY)
    await vault.forPlugin('mail').write('umlaut', 'größe 👋')
    expect(await (await again()).forPlugin('mail').read('password')).toBe(CANARY)
    expect(await vault.forPlugin('mail').read('umlaut')).toBe('größe 👋')
    expect(await vault.forPlugin('mail').names()).toEqual(['password', 'umlaut'])
    expect(await vault.forPlugin('chat').read('password')).toBeUndefined()
    expect(await vault.forPlugin('chat').names()).toEqual([])
  })

  it('writes the first secret beside another first one that ends while it begins', async () => {
    const { database, keyFile, vault } = await start(engine)
    const { sql } = database
    let overtake: (() => Promise<void>) | undefined = () => vault.forPlugin('mail').write('first', 'one')
    // The other write ends after this one found no key, and before it counts the secrets.
    const counting = new Proxy(sql, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        if (name !== 'one') return member.bind(target)
        return async (...given: unknown[]) => {
          await overtake?.()
          overtake = undefined
          return member.apply(target, given)
        }
      },
    })
    const slow = await openVault({ sql: counting, scrub: () => database.scrub() }, { file: keyFile })
    await slow.forPlugin('mail').write('second', 'two')
    expect(await vault.forPlugin('mail').read('second')).toBe('two')
    expect(await slow.forPlugin('mail').read('first')).toBe('one')
  })

  it('replaces and removes, and says whether there was one', async () => {
    const { vault } = await start(engine)
    const mail = vault.forPlugin('mail')
    await mail.write('password', 'old')
    await mail.write('password', 'new')
    expect(await mail.read('password')).toBe('new')
    expect([await mail.remove('password'), await mail.remove('password')]).toEqual([true, false])
    expect(await mail.read('password')).toBeUndefined()
  })

  it('a change and what is written with it are both there, or neither is', async () => {
    const {
      vault,
      database: { sql },
    } = await start(engine)
    await sql.run`CREATE TABLE note (text TEXT NOT NULL)`
    const mail = vault.forPlugin('mail')
    const note = (text: string | null) => [sql.sql`INSERT INTO note (text) VALUES (${text})`]
    await mail.write('password', 'first', note('written'))
    await expect(mail.write('password', 'second', note(null))).rejects.toThrow()
    await expect(mail.remove('password', note(null))).rejects.toThrow()
    expect(await mail.read('password')).toBe('first')
    expect(await mail.remove('password', note('removed'))).toBe(true)
    expect(await sql.all<{ text: string }>`SELECT text FROM note ORDER BY text DESC`).toEqual([
      { text: 'written' },
      { text: 'removed' },
    ])
  })

  it('seals the same secret differently each time', async () => {
    const { vault, database } = await start(engine)
    await vault.forPlugin('mail').write('a', CANARY)
    await vault.forPlugin('mail').write('b', CANARY)
    const rows = await database.sql.all<{ nonce: Uint8Array; sealed: Uint8Array }>`SELECT nonce, sealed FROM core_vault`
    expect(new Set(rows.map((row) => Buffer.from(row.nonce).toString('hex'))).size).toBe(2)
    expect(rows.map((row) => row.nonce.length)).toEqual([12, 12])
    expect(new Set(rows.map((row) => Buffer.from(row.sealed).toString('hex'))).size).toBe(2)
  })

  it.each(['sealed', 'nonce'])('a record whose %s was changed does not open', async (column) => {
    const { vault, database } = await start(engine)
    await vault.forPlugin('mail').write('password', CANARY)
    const row = await database.sql.one<Record<string, Uint8Array>>`SELECT nonce, sealed FROM core_vault`
    const changed = Uint8Array.from(row?.[column] ?? [])
    changed[3] = (changed[3] ?? 0) ^ 1
    await (column === 'sealed'
      ? database.sql.run`UPDATE core_vault SET sealed = ${changed}`
      : database.sql.run`UPDATE core_vault SET nonce = ${changed}`)
    const error = await vault
      .forPlugin('mail')
      .read('password')
      .then(
        () => undefined,
        (reason: unknown) => reason,
      )
    expect(String(error)).toMatch(/secret "mail\/password" does not open/)
    expect(String(error)).not.toContain(CANARY)
  })

  it('a record moved to another name or plugin does not open', async () => {
    const { vault, database } = await start(engine)
    await vault.forPlugin('mail').write('password', CANARY)
    await database.sql.run`UPDATE core_vault SET name = 'other'`
    await expect(vault.forPlugin('mail').read('other')).rejects.toThrow(/does not open/)
    await database.sql.run`UPDATE core_vault SET plugin = 'chat', name = 'password'`
    await expect(vault.forPlugin('chat').read('password')).rejects.toThrow(/does not open/)
  })
})

describe('the key and the files', () => {
  it('no file of the home or the database holds the secret, also after removing it', async () => {
    const { vault, database, dir } = await start('sqlite')
    const holding = async (): Promise<string[]> => {
      const names = (await readdir(dir, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
      const texts = await Promise.all(names.map((name) => readFile(name)))
      return names.filter((_, index) =>
        [CANARY, Buffer.from(CANARY).toString('base64'), Buffer.from(CANARY).toString('hex')].some((form) =>
          texts[index]?.includes(form),
        ),
      )
    }
    await vault.forPlugin('mail').write('password', CANARY)
    expect(await holding()).toEqual([])
    await database.scrub()
    expect(await holding()).toEqual([])
    const sealed = await database.sql.one<{ sealed: Uint8Array }>`SELECT sealed FROM core_vault`
    await vault.forPlugin('mail').remove('password')
    const left = await Promise.all(
      [join(dir, 'data', 'svc.db'), join(dir, 'data', 'svc.db-wal')].map((name) => readFile(name)),
    )
    expect(left.some((bytes) => bytes.includes(Buffer.from(sealed?.sealed ?? '')))).toBe(false)
  })

  it('is made at the first write, for its owner only', async () => {
    const { vault, keyFile } = await start('sqlite')
    expect(await vault.forPlugin('mail').read('nothing')).toBeUndefined()
    await expect(stat(keyFile)).rejects.toThrow(/ENOENT/)
    await Promise.all([vault.forPlugin('mail').write('a', '1'), vault.forPlugin('mail').write('b', '2')])
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600)
    expect(await readdir(dirname(keyFile))).toEqual(['vault.key'])
    expect([await vault.forPlugin('mail').read('a'), await vault.forPlugin('mail').read('b')]).toEqual(['1', '2'])
  })

  it('a key that others may read is tightened with a warning', async () => {
    const { vault, keyFile, again, lines } = await start('sqlite')
    await vault.forPlugin('mail').write('a', '1')
    await chmod(keyFile, 0o644)
    await again()
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600)
    expect(lines.join('\n')).toMatch(/could be read by others/)
  })

  it('a key that is gone while secrets exist is an error and not replaced', async () => {
    const { vault, keyFile, again } = await start('sqlite')
    await vault.forPlugin('mail').write('a', '1')
    await copyFile(keyFile, `${keyFile}.kept`)
    await rm(keyFile)
    const without = (await again()).forPlugin('mail')
    await expect(without.read('a')).rejects.toThrow(/holds 1 secrets, but its key file .* is gone/)
    await expect(without.write('b', '2')).rejects.toThrow(/is gone/)
    await copyFile(`${keyFile}.kept`, keyFile)
    expect(await (await again()).forPlugin('mail').read('a')).toBe('1')
  })

  it('a damaged key is an error', async () => {
    const { vault, keyFile, again } = await start('sqlite')
    await vault.forPlugin('mail').write('a', '1')
    await writeFile(keyFile, 'abc')
    await expect(again()).rejects.toThrow(/is damaged/)
  })
})
