import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HomeInUse, lockHome, readDaemonFile } from '../../../core/storage/lock.ts'
import { start } from './child.ts'
import { folder } from './engines.ts'

describe('the lock of a home', () => {
  it('a second daemon is told the pid and the address of the first', async () => {
    const home = await folder()
    const first = start('holder', [home])
    expect(await first.line()).toBe(`held ${first.pid}`)
    const second = start('holder', [home])
    expect(await second.line()).toBe(`in use by ${first.pid} at 127.0.0.1:4545`)
    expect(await second.exit()).toBe(3)
    expect(readDaemonFile(home)).toMatchObject({ pid: first.pid, listenAddr: '127.0.0.1:4545' })
    await first.kill()
  })

  it('after kill -9 the next start just works', async () => {
    const home = await folder()
    const first = start('holder', [home])
    await first.line()
    await first.kill()
    expect(readDaemonFile(home)).toBeUndefined()
    const second = start('holder', [home])
    expect(await second.line()).toBe(`held ${second.pid}`)
    second.stdin.end()
    expect(await second.exit()).toBe(0)
  })

  it('tells whether the last one that listened let go of it', async () => {
    const home = await folder()
    const first = start('holder', [home])
    await first.line()
    await first.kill()
    using second = await lockHome(home)
    expect(second.afterCrash).toBe(true)
    second.publish('127.0.0.1:4545')
    second[Symbol.dispose]()
    using third = await lockHome(home)
    expect(third.afterCrash).toBe(false)
  })

  it('one of many that start at once gets it', async () => {
    const home = await folder()
    const all = Array.from({ length: 4 }, () => start('holder', [home]))
    const lines = await Promise.all(all.map((child) => child.line()))
    expect(lines.filter((line) => line.startsWith('held'))).toHaveLength(1)
    await Promise.all(all.map((child) => child.kill()))
  })

  it('holds within one process too, and is free after disposing', async () => {
    const home = await folder()
    const lock = await lockHome(home)
    const error = await lockHome(home).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(HomeInUse)
    expect(error).toMatchObject({ pid: process.pid, address: undefined })
    lock[Symbol.dispose]()
    lock[Symbol.dispose]()
    const again = await lockHome(home)
    again[Symbol.dispose]()
  })

  it('publishes an address that others cannot read, and takes it back', async () => {
    const home = await folder()
    const lock = await lockHome(home)
    lock.publish('127.0.0.1:1234')
    const file = join(home, 'daemon.json')
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ pid: process.pid, listen_addr: '127.0.0.1:1234' })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const pass = readDaemonFile(home)?.pass ?? ''
    expect([
      lock.isPass(pass),
      lock.isPass(''),
      lock.isPass(pass.replace(/^./, pass.startsWith('A') ? 'B' : 'A')),
    ]).toEqual([true, false, false])
    lock[Symbol.dispose]()
    expect(readDaemonFile(home)).toBeUndefined()
  })

  it('a lock file that lost power half written is made anew', async () => {
    const home = await folder()
    await writeFile(join(home, 'daemon.lock'), 'garbage '.repeat(500))
    const lock = await lockHome(home)
    await expect(lockHome(home)).rejects.toThrow(HomeInUse)
    lock[Symbol.dispose]()
  })

  it('a daemon file that is damaged counts as none', async () => {
    const home = await folder()
    await writeFile(join(home, 'daemon.json'), '{"pid": 1')
    expect(readDaemonFile(home)).toBeUndefined()
  })
})
