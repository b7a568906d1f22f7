import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createConsola } from 'consola'
import { describe, expect, it } from 'vitest'
import { fingerprints } from '../../../core/host/folders.ts'
import { watchPlugins } from '../../../core/host/watch.ts'
import { startHost } from '../../support/host.ts'
import { pluginText, routeText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'

const says = (text: string) => pluginText('one', { setup: `${routeText('/api/one', text)}; return {}` })
const watching = async (paths: readonly string[] = []) =>
  startHost({ plugins: [], memory: true, listen: false, config: { plugins: { watch: true, paths } } })

describe('a watched folder of plugins', () => {
  it('loads a plugin that appears, follows its edits, and unloads it when it goes', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, says('first'))
    await host.plugin('one', 'loaded')
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'first' })
    await writePlugin(folder, says('second'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'second' })
    await rm(folder, { recursive: true })
    await host.plugin('one', 'gone')
    expect((await host.fetch('/api/one')).status).toBe(404)
  })

  it('loads a plugin of one file, follows its edits, and unloads it when it goes', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins')
    await writePlugin(folder, says('first'), 'one.ts')
    await host.plugin('one', 'loaded')
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'first' })
    await writeFile(join(folder, 'one.ts'), says('second'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'second' })
    await rm(join(folder, 'one.ts'))
    await host.plugin('one', 'gone')
    expect((await host.fetch('/api/one')).status).toBe(404)
  })
  it('takes no file for a plugin that is none: declarations, tests, notes, what an editor leaves', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins')
    for (const name of ['one.d.ts', 'one.test.ts', 'README.md', '.one.ts', 'one.ts~', 'one.ts.tmp'])
      await writeFile(join(folder, name), says(name))
    await writePlugin(folder, says('real'), 'one.ts')
    await host.plugin('one', 'loaded')
    expect(host.app.daemon.plugins()).toHaveLength(1)
  })
  it('is read at a start too, plugins of one file with it', async () => {
    await using home = await temporaryFolder()
    await writePlugin(join(home.path, 'plugins'), says('there'), 'one.ts')
    await using host = await startHost({ plugins: [], home: home.path })
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'there' })
  })
  it('that changed between the start and the watching is caught up with', async () => {
    await using home = await temporaryFolder()
    const root = join(home.path, 'plugins')
    for (const name of ['stays', 'goes', 'changes', 'comes']) await writePlugin(root, 'export default 1', `${name}.ts`)
    const known = await fingerprints(['stays', 'goes', 'changes'].map((name) => join(root, `${name}.ts`)))
    await rm(join(root, 'goes.ts'))
    await writeFile(join(root, 'changes.ts'), 'export default 10')
    const told: string[] = []
    const all = Promise.withResolvers<void>()
    const sync = async (path: string): Promise<void> => {
      if (told.push(basename(path)) === 3) all.resolve()
    }
    using _ = await watchPlugins({
      host: { sync },
      log: createConsola({ level: 0 }),
      roots: [root],
      folders: [],
      known,
      settleMs: 1,
    })
    await all.promise
    expect(told.toSorted()).toEqual(['changes.ts', 'comes.ts', 'goes.ts'])
  })

  it('is not read once more for what an installation reads, or still has to read', async () => {
    await using host = await startHost({ plugins: [], memory: true, listen: false })
    const folder = await writePlugin(join(host.home, 'plugins', 'one'), says('first'))
    const told = Promise.withResolvers<void>()
    const sync = (path: string, seen?: string): Promise<void> => {
      const done = host.app.host.sync(path, seen)
      told.resolve(done)
      return done
    }
    const installed = host.app.host.sync(folder)
    using _ = await watchPlugins({
      host: { sync },
      log: createConsola({ level: 0 }),
      roots: [dirname(folder)],
      folders: [],
      known: new Map(),
      settleMs: 1,
    })
    await Promise.all([installed, told.promise])
    expect(host.app.daemon.plugins()).toMatchObject([{ name: 'one', state: 'loaded', reloads: 0 }])
    await writePlugin(folder, says('second'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
  })

  it('follows a file the plugin imports, in a folder of its own', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, `export const text = 'a'`, 'parts/text.ts')
    await writePlugin(
      folder,
      says('x')
        .replace('"x"', 'text')
        .replace('import * as v', `import { text } from './parts/text.ts'\nimport * as v`),
    )
    await host.plugin('one', 'loaded')
    await writePlugin(folder, `export const text = 'b'`, 'parts/text.ts')
    await host.plugin('one', 'loaded', ({ reloads }) => reloads > 0)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'b' })
  })

  it('follows edits in place, also of a file that was replaced before and of a folder that came later', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, says('first'))
    await host.plugin('one', 'loaded')
    await writePlugin(folder, says('replaced'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
    await writeFile(join(folder, 'index.ts'), says('in place'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 2)
    await writePlugin(folder, `export const text = 'a'`, 'later/text.ts')
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 3)
    await writeFile(join(folder, 'later', 'text.ts'), `export const text = 'bb'`)
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 4)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'in place' })
  })

  it('follows a folder that is replaced by another of its name, as a checkout does', async () => {
    await using outside = await temporaryFolder()
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, says('first'))
    await host.plugin('one', 'loaded')
    await writePlugin(join(outside.path, 'one'), says('second'))
    await rm(folder, { recursive: true })
    await rename(join(outside.path, 'one'), folder)
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
    await writeFile(join(folder, 'index.ts'), says('third'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 2)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'third' })
  })

  it('takes a plugin that is moved in whole', async () => {
    await using outside = await temporaryFolder()
    await using host = await watching()
    await writePlugin(join(outside.path, 'one'), says('moved'))
    await rename(join(outside.path, 'one'), join(host.home, 'plugins', 'one'))
    await host.plugin('one', 'loaded')
  })

  it('keeps the old code and shows the error of an edit that does not parse, until the next edit', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, says('good'))
    await host.plugin('one', 'loaded')
    await writePlugin(folder, 'import nothing from')
    await host.plugin('one', 'loaded', ({ error }) => error !== undefined)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'good' })
    expect(host.app.daemon.plugins()[0]?.error).toMatch(
      /not reloaded, the code before goes on: .*plugins\/one\/index\.ts:1:/,
    )
    expect(host.app.daemon.warnings().join()).toMatch(/plugins\/one\/index\.ts:1:/)
    await writePlugin(folder, says('better'))
    await host.plugin('one', 'loaded', ({ error }) => error === undefined)
    expect((await host.json('GET', '/api/one')).body).toEqual({ text: 'better' })
  })

  it('loads a plugin that was broken when it appeared once it is mended', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, 'export default 1')
    await host.plugin('one', 'failed')
    await writePlugin(folder, says('mended'))
    await host.plugin('one', 'loaded')
  })

  it('does not reload for a file that was only touched or that is not part of the plugin', async () => {
    await using host = await watching()
    const folder = join(host.home, 'plugins', 'one')
    await writePlugin(folder, says('same'))
    await host.plugin('one', 'loaded')
    await writeFile(join(folder, '.index.ts.swp'), 'editor')
    await mkdir(join(folder, 'node_modules'))
    await writeFile(join(folder, 'node_modules', 'x.js'), '')
    // The edit after is seen, so the others would have been.
    await writePlugin(folder, says('edited'))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads > 0)
    expect(host.app.daemon.plugins()[0]?.reloads).toBe(1)
  })

  it('follows a single plugin folder named by a path, also when it goes and comes back', async () => {
    await using outside = await temporaryFolder()
    const folder = await writePlugin(join(outside.path, 'one'), says('named'))
    await using host = await watching([folder])
    await host.plugin('one', 'loaded')
    await cp(folder, join(outside.path, 'copy'), { recursive: true })
    await rm(folder, { recursive: true })
    await host.plugin('one', 'gone')
    await rename(join(outside.path, 'copy'), folder)
    await host.plugin('one', 'loaded')
  })

  it('leaves no watcher behind', async () => {
    const watchers = () => process.getActiveResourcesInfo().filter((name) => /FSEvent|StatWatcher/.test(name)).length
    const before = watchers()
    const host = await watching()
    await writePlugin(join(host.home, 'plugins', 'one'), says('x'))
    await host.plugin('one', 'loaded')
    await host[Symbol.asyncDispose]()
    expect(watchers()).toBe(before)
  })
})
