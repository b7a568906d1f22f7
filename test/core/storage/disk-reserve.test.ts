import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import { DiskReserve } from '../../../core/storage/disk-reserve.ts'
import { openFile } from '../../../core/storage/sqlite-file.ts'
import { SqliteDatabase } from '../../../core/storage/sqlite.ts'
import { folder, recorder } from './engines.ts'

const reserveIn = async (dir: string, { log } = recorder()): Promise<DiskReserve> => {
  const reserve = new DiskReserve(join(dir, 'reserve'), log, 0)
  expect(await reserve.create()).toBe(true)
  return reserve
}

it('the reserve holds four real mebibytes that nobody else may read', async () => {
  const dir = await folder()
  await using _reserve = await reserveIn(dir)
  const { size, blocks, mode } = statSync(join(dir, 'reserve'))
  expect(size).toBe(4_194_304)
  expect(blocks * 512).toBeGreaterThanOrEqual(4_000_000)
  expect(mode & 0o777).toBe(0o600)
})

it('the reserve goes once when the disk is full, which is logged', async () => {
  const dir = await folder()
  const { log, lines } = recorder()
  await using reserve = await reserveIn(dir, { log, lines })
  expect(reserve.release()).toBe(true)
  expect(existsSync(join(dir, 'reserve'))).toBe(false)
  expect(reserve.release()).toBe(false)
  expect(lines.join('\n')).toMatch(/the disk is full/)
})

it('the reserve comes back when there is room', async () => {
  const dir = await folder()
  await using reserve = await reserveIn(dir)
  reserve.release()
  expect(await reserve.create()).toBe(true)
  expect(existsSync(join(dir, 'reserve'))).toBe(true)
})

it('that ends waits for the file it makes, and makes none after that', async () => {
  const dir = await folder()
  const reserve = new DiskReserve(join(dir, 'reserve'), recorder().log, 0)
  let made = false
  const making = reserve.create().then(() => {
    made = true
  })
  await reserve[Symbol.asyncDispose]()
  expect(made).toBe(true)
  await making
  expect(reserve.release()).toBe(true)
  expect(await reserve.create()).toBe(false)
  expect(readdirSync(dir)).toEqual([])
})

it('no reserve is made where it would fill the disk, or where nothing can be written', async () => {
  const dir = await folder()
  const { log } = recorder()
  await using greedy = new DiskReserve(join(dir, 'reserve'), log, Number.MAX_SAFE_INTEGER)
  expect(await greedy.create()).toBe(false)
  await using lost = new DiskReserve(join(dir, 'missing', 'reserve'), log, 0)
  expect(await lost.create()).toBe(false)
})

it('a commit that finds no room gives the reserve up, refuses the write with 503, and the next one works', async () => {
  const dir = await folder()
  const { log } = recorder()
  await using reserve = new DiskReserve(join(dir, 'reserve'), log, 0)
  await reserve.create()
  const connection = await openFile(join(dir, 'svc.db'))
  const db = new SqliteDatabase(connection, log, () => {
    reserve.release()
    // The engine's own limit stands for a disk: the room that was given up can be used.
    connection.instance.pragma('max_page_count = 100000')
  })
  try {
    await db.run`CREATE TABLE thing (text TEXT)`
    connection.instance.pragma(
      `max_page_count = ${Number(connection.instance.pragma('page_count', { simple: true })) + 1}`,
    )
    const refused = await db.run`INSERT INTO thing (text) VALUES (${'x'.repeat(100_000)})`.catch(
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(Refusal)
    expect(refused).toMatchObject({ code: 'service_unavailable', retryAfterSecs: 5 })
    expect(reserve.held).toBe(false)
    expect(await db.run`INSERT INTO thing (text) VALUES ('small')`).toEqual({ changes: 1 })
    expect(await db.all`SELECT text FROM thing`).toEqual([{ text: 'small' }])
  } finally {
    await db.close()
    await connection.close()
  }
})
