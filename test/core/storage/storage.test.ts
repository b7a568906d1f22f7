import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openStorage } from '../../../core/storage/storage.ts'
import { engines, open } from './engines.ts'

describe.each(engines)('storage on %s', (engine) => {
  it('keeps values, text and bytes as they are', async () => {
    const { database, dir } = await open(engine)
    await using storage = openStorage(database, join(dir, 'files'))
    const notes = storage.forPlugin('notes')
    await notes.setItem('a:object', { n: [1, 'zwei', null] })
    await notes.setItem('a:text', 'grün 👋')
    await notes.setItemRaw('a:bytes', new Uint8Array([0, 200, 255]))
    expect(await notes.getItem('a:object')).toEqual({ n: [1, 'zwei', null] })
    expect(await notes.getItem('a:text')).toBe('grün 👋')
    expect([...((await notes.getItemRaw<Uint8Array>('a:bytes')) ?? [])]).toEqual([0, 200, 255])
    expect(await notes.getItem('nothing')).toBeNull()
    expect(await notes.hasItem('a:text')).toBe(true)
    expect((await notes.getMeta('a:text')).mtime).toBeInstanceOf(Date)
  })

  it('lists and clears below a base, nothing beside it', async () => {
    const { database, dir } = await open(engine)
    await using storage = openStorage(database, join(dir, 'files'))
    const notes = storage.forPlugin('notes')
    for (const key of ['größe:1', 'größe:2', 'größer:3', 'x']) await notes.setItem(key, key)
    expect((await notes.getKeys('größe')).toSorted()).toEqual(['größe:1', 'größe:2'])
    await notes.clear('größe')
    expect((await notes.getKeys()).toSorted()).toEqual(['größer:3', 'x'])
    await notes.removeItem('x')
    expect(await notes.hasItem('x')).toBe(false)
  })

  it('plugins do not see each other, whatever their names', async () => {
    const { database, dir } = await open(engine)
    await using storage = openStorage(database, join(dir, 'files'))
    await storage.forPlugin('kv').setItem('a', 'mine')
    await storage.forPlugin('kv-other').setItem('a', 'theirs')
    expect(await storage.forPlugin('kv').getKeys()).toEqual(['a'])
    await storage.forPlugin('kv').clear()
    expect(await storage.forPlugin('kv-other').getItem('a')).toBe('theirs')
    expect(() => storage.forPlugin('../x')).toThrow(/not a plugin's name/)
  })

  it('overwrites, and the last of many writes at once is one of them', async () => {
    const { database, dir } = await open(engine)
    await using storage = openStorage(database, join(dir, 'files'))
    const notes = storage.forPlugin('notes')
    await Promise.all(Array.from({ length: 20 }, (_, n) => notes.setItem('same', n)))
    expect(await notes.getItem<number>('same')).toBeGreaterThanOrEqual(0)
    expect(await notes.getKeys()).toEqual(['same'])
  })
})

it('files are plain files in a folder for the owner only', async () => {
  const { database, dir } = await open('sqlite')
  await using storage = openStorage(database, join(dir, 'files'))
  const files = storage.files('notes')
  await files.setItem('sub:hello.txt', 'hi')
  expect(await readFile(join(dir, 'files', 'notes', 'sub', 'hello.txt'), 'utf8')).toBe('hi')
  expect((await stat(join(dir, 'files', 'notes'))).mode & 0o777).toBe(0o700)
  expect(await files.getKeys()).toEqual(['sub:hello.txt'])
  await expect(files.getItem('..:..:etc:passwd')).rejects.toThrow(/\.\./)
})
