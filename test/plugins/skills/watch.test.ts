import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { FolderWatch, MIN_WATCHED } from '../../../plugins/skills/watch.ts'

const names = Array.from({ length: MIN_WATCHED + 1 }, (_, index) => `skill-${index}`)

describe.runIf(process.platform === 'linux')('the watch of folders of skills', () => {
  function make() {
    const root = join(mkdtempSync(join(tmpdir(), 'svc-watch-')), 'skills')
    mkdirSync(root)
    for (const name of names) {
      mkdirSync(join(root, name))
      writeFileSync(join(root, name, 'SKILL.md'), 'one')
    }
    let now = 0
    const watch = new FolderWatch(root, () => now)
    return {
      root,
      watch,
      pass: (ms: number) => (now += ms),
      settle() {
        watch.follow(names)
        watch.follow(names)
      },
      /** After the event loop has asked the system once for what is ready. */
      async heard() {
        for (const _ of [1, 2]) await setImmediate()
        return !watch.isQuiet()
      },
      [Symbol.dispose]() {
        watch[Symbol.dispose]()
        rmSync(join(root, '..'), { recursive: true })
      },
    }
  }

  it.each([
    ['a file that is written in place', (root: string) => writeFileSync(join(root, 'skill-3', 'SKILL.md'), 'two')],
    ['a new file', (root: string) => writeFileSync(join(root, 'skill-3', 'skill.toml'), '')],
    ['a new folder', (root: string) => mkdirSync(join(root, 'more'))],
    ['a folder that is removed', (root: string) => rmSync(join(root, 'skill-4'), { recursive: true })],
    [
      'a folder that is replaced',
      (root: string) => {
        renameSync(join(root, 'skill-5'), join(root, '..', 'old'))
        mkdirSync(join(root, 'skill-5'))
      },
    ],
  ])('is quiet until there is %s, and watches what is there then', async (_, change) => {
    using test = make()
    test.settle()
    expect(test.watch.isQuiet()).toBe(true)
    change(test.root)
    expect(await test.heard()).toBe(true)
    test.watch.follow(names.filter((name) => name !== 'skill-4'))
    await setImmediate()
    test.watch.follow(names.filter((name) => name !== 'skill-4'))
    expect(test.watch.isQuiet()).toBe(true)
    writeFileSync(join(test.root, 'skill-5', 'SKILL.md'), 'three')
    expect(await test.heard()).toBe(true)
  })

  it('sees that the whole folder is another at once, and looks once a second whatever it hears', () => {
    using test = make()
    test.settle()
    test.pass(999)
    expect(test.watch.isQuiet()).toBe(true)
    test.pass(1)
    expect(test.watch.isQuiet()).toBe(false)
    test.settle()
    renameSync(test.root, `${test.root}-old`)
    mkdirSync(test.root)
    expect(test.watch.isQuiet()).toBe(false)
  })

  it('is never quiet before its second list, nor with few folders', () => {
    using test = make()
    expect(test.watch.isQuiet()).toBe(false)
    test.watch.follow(names)
    expect(test.watch.isQuiet()).toBe(false)
    for (const _ of [1, 2]) test.watch.follow(names.slice(2))
    expect(test.watch.isQuiet()).toBe(false)
  })
})
