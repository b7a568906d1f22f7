import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, routeText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'

interface Bench extends AsyncDisposable {
  readonly host: TestHost
  write(name: string, text: string): Promise<string>
  state(): Record<string, string>
  error(name: string): string | undefined
}
async function bench(config: Parameters<typeof startHost>[0] = {}): Promise<Bench> {
  const folder = await temporaryFolder()
  const host = await startHost({ plugins: [], memory: true, listen: false, ...config })
  const status = (name: string) => host.app.daemon.plugins().find((plugin) => plugin.name === name)
  return {
    host,
    write: (name, text) => writePlugin(join(folder.path, name), text),
    state: () => Object.fromEntries(host.app.daemon.plugins().map(({ name, state }) => [name, state])),
    error: (name) => status(name)?.error,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}
const says = (name: string, text: string) =>
  pluginText(name, { setup: `${routeText(`/api/${name}`, text)}; return {}` })
const providing = (name: string, value: string) =>
  pluginText(name, {
    before: `const Token = defineService<{ value(): string }>()('${name}')`,
    members: 'provides: { it: Token },',
    setup: `return { it: { value: () => '${value}' } }`,
  })
/** A route that answers `{ text }` with what the expression is worth. */
const getRoute = (name: string, expression: string): string => `ctx.routes.add(defineRoute({
      method: 'GET', path: '/api/${name}', summary: 'A test', auth: 'public', effect: 'read', cost: 1,
      returns: v.object({ text: v.string() }), handle: () => ({ text: ${expression} }) }))`
const needing = (name: string, needs: string, setup = '') =>
  pluginText(name, {
    before: `const Needed = defineService<{ value(): string }>()('${needs}')
const Own = defineService<{ value(): string }>()('${name}')`,
    members: 'requires: { needed: Needed }, provides: { own: Own },',
    setup: `${setup}
    ${getRoute(name, 'ctx.services.needed.value()')}
    return { own: { value: () => '${name} of ' + ctx.services.needed.value() } }`,
  })

describe('loading a plugin', () => {
  it('makes its routes answer', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('one', says('one', 'hi')))
    expect((await it.host.json('GET', '/api/one')).body).toEqual({ text: 'hi' })
  })

  it.each([
    ['no default export', 'export const x = 1', 'has no default export'],
    [
      'no config',
      `export default { name: 'bare', version: '1.0.0', setup() {} }`,
      'config: is missing; write v.object({}) when there is nothing to configure',
    ],
    ['a default export that is no object', 'export default 5', 'must "export default definePlugin({ … })"'],
    ['a name that is not kebab-case', pluginText('Bad_Name'), 'name: must be kebab-case'],
    [
      'no schema for its configuration',
      `export default { name: 'one', version: '1', config: {}, setup: () => ({}) }`,
      'config.kind: ',
    ],
    [
      'two migrations with one id',
      pluginText('one', { members: `migrations: [{ id: 'a', sql: 'SELECT 1' }, { id: 'a', sql: 'SELECT 2' }],` }),
      'migrations: ids must be unique',
    ],
    [
      'no setup',
      `import * as v from 'valibot'\nexport default { name: 'one', version: '1', config: v.object({}) }`,
      'setup: is missing; write a function that registers what the plugin adds',
    ],
  ])('is refused with a clear message when it has %s', async (_case, text, message) => {
    await using it = await bench()
    await expect(it.host.app.host.load(await it.write('one', text))).rejects.toThrow(message)
    expect(it.error('one')).toContain(message)
  })

  it('is refused with file and line when its code does not parse', async () => {
    await using it = await bench()
    const folder = await it.write('one', 'export default {\n  name: \n}\nconst =')
    await expect(it.host.app.host.load(folder)).rejects.toThrow(/one\/index\.ts:3:/)
  })

  it('is refused when its configuration is wrong, and names the key', async () => {
    await using it = await bench({ config: { plugins: { one: { size: 'big' } } } })
    const text = pluginText('one').replace('config: v.object({})', 'config: v.object({ size: v.number() })')
    await expect(it.host.app.host.load(await it.write('one', text))).rejects.toThrow('plugins.one.size: ')
  })

  it('is refused when another plugin has its name', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('one', says('one', 'first')))
    await expect(it.host.app.host.load(await it.write('copy', says('one', 'second')))).rejects.toThrow(
      /a plugin of this name is loaded from .*\/one/,
    )
    expect((await it.host.json('GET', '/api/one')).body).toEqual({ text: 'first' })
  })

  it('is refused when another plugin provides its service', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('one', providing('one', '1')))
    await expect(
      it.host.app.host.load(await it.write('two', providing('two', '2').replace(`()('two')`, `()('one')`))),
    ).rejects.toThrow('service "one" is provided by a plugin that is loaded already')
  })

  it('leaves nothing behind when setup throws', async () => {
    await using it = await bench()
    const undone = join(it.host.home, 'undone')
    const text = pluginText('one', {
      before: `import { writeFileSync } from 'node:fs'`,
      setup: `${routeText('/api/one', 'x')}
        const tool = { name: 'one', description: 'x', risk: 'read', input: v.object({}), run: async () => '' }
        ctx.tools.add(defineTool(tool))
        ctx.hooks.on(notify('x:happened'), () => {})
        ctx.own('thing', () => writeFileSync(${JSON.stringify(undone)}, ''))
        throw new Error('no luck')`,
    })
    await expect(it.host.app.host.load(await it.write('one', text))).rejects.toThrow('setup failed: no luck')
    expect(it.state()).toEqual({ one: 'failed' })
    expect((await it.host.fetch('/api/one')).status).toBe(404)
    const { existsSync } = await import('node:fs')
    expect(existsSync(undone)).toBe(true)
    await it.host.app.host.load(await it.write('one', says('one', 'again')))
    expect((await it.host.json('GET', '/api/one')).body).toEqual({ text: 'again' })
  })

  it('brings up those that waited for its service', async () => {
    await using it = await bench()
    await expect(it.host.app.host.load(await it.write('user', needing('user', 'base')))).rejects.toThrow(
      'needs service "base", which no plugin provides',
    )
    expect(it.host.app.daemon.warnings()).toEqual([
      'plugin "user" is not loaded: needs service "base", which no plugin provides',
    ])
    await it.host.app.host.load(await it.write('base', providing('base', 'b')))
    expect(it.state()).toEqual({ user: 'loaded', base: 'loaded' })
    expect((await it.host.json('GET', '/api/user')).body).toEqual({ text: 'b' })
    expect(it.host.app.daemon.warnings()).toEqual([])
  })
})

describe('starting', () => {
  it('goes on without a plugin that fails and without those that require it, and says why', async () => {
    await using folder = await temporaryFolder()
    const folders = [
      await writePlugin(join(folder.path, 'top'), needing('top', 'middle')),
      await writePlugin(join(folder.path, 'middle'), needing('middle', 'base')),
      await writePlugin(
        join(folder.path, 'base'),
        pluginText('base', {
          before: `const T = defineService<object>()('base')`,
          members: 'provides: { it: T },',
          setup: `throw new Error('no disk')`,
        }),
      ),
      await writePlugin(join(folder.path, 'free'), says('free', 'well')),
    ]
    await using host = await startHost({ plugins: folders, memory: true, listen: false })
    const status = Object.fromEntries(
      host.app.daemon.plugins().map(({ name, state, error }) => [name, `${state} ${error ?? ''}`]),
    )
    expect(status).toMatchObject({
      base: 'failed setup failed: no disk',
      middle: 'failed needs service "base": plugin "base" provides it but is not loaded: setup failed: no disk',
      free: 'loaded ',
    })
    expect(status['top']).toContain(
      'needs service "middle": plugin "middle" provides it but is not loaded: needs service "base"',
    )
    expect((await host.fetch('/api/free')).status).toBe(200)
    expect(host.log.join('')).toContain('plugin "base" is not loaded: setup failed: no disk')
  })

  it('leaves out what the configuration disables', async () => {
    await using folder = await temporaryFolder()
    await using host = await startHost({
      plugins: [await writePlugin(join(folder.path, 'one'), says('one', 'x'))],
      memory: true,
      listen: false,
      config: { plugins: { disabled: ['one'] } },
    })
    expect(host.app.daemon.plugins()).toMatchObject([{ name: 'one', state: 'disabled', error: undefined }])
    await expect(host.app.host.reload('one')).rejects.toThrow('Plugin "one" is disabled by the configuration')
  })

  it('refuses a cycle and prints its path', async () => {
    await using folder = await temporaryFolder()
    const folders = [
      await writePlugin(join(folder.path, 'a'), needing('a', 'b')),
      await writePlugin(join(folder.path, 'b'), needing('b', 'a')),
    ]
    await using host = await startHost({ plugins: folders, memory: true, listen: false })
    expect(host.app.daemon.plugins().map(({ error }) => error)).toEqual([
      'plugins require each other: a -> b -> a',
      'plugins require each other: a -> b -> a',
    ])
  })
})

describe('unloading a plugin', () => {
  it('takes those that require it down first, and reload brings all back', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('base', providing('base', 'b')))
    await it.host.app.host.load(await it.write('middle', needing('middle', 'base')))
    await it.host.app.host.load(await it.write('top', needing('top', 'middle')))
    await it.host.app.host.unload('base')
    expect(it.state()).toEqual({ base: 'disabled', middle: 'failed', top: 'failed' })
    expect(it.error('middle')).toBe('needs service "base": plugin "base" was unloaded')
    expect((await it.host.fetch('/api/top')).status).toBe(404)
    await it.host.app.host.reload('base')
    expect(it.state()).toEqual({ base: 'loaded', middle: 'loaded', top: 'loaded' })
    expect((await it.host.json('GET', '/api/top')).body).toEqual({ text: 'middle of b' })
  })

  it('waits for a request that runs, and lets it finish on the old code', async () => {
    await using it = await bench()
    const slow = `const gateway = (globalThis as any).slowGate; gateway.entered(); await gateway.open`
    const gateway = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    Object.assign(globalThis, { slowGate: { entered: () => entered.resolve(), open: gateway.promise } })
    await it.host.app.host.load(
      await it.write('one', pluginText('one', { setup: `${routeText('/api/one', 'old', slow)}; return {}` })),
    )
    const answer = it.host.json('GET', '/api/one')
    await entered.promise
    const unloaded = it.host.app.host.unload('one')
    expect(it.state()).toEqual({ one: 'loaded' })
    gateway.resolve()
    expect((await answer).body).toEqual({ text: 'old' })
    await unloaded
    expect(it.state()).toEqual({ one: 'disabled' })
  })

  it('goes on without work that ignores the abort signal, and reports it', async () => {
    await using it = await bench({ config: { plugins: { drain_ms: 20 } } })
    await it.host.app.host.load(
      await it.write('one', pluginText('one', { setup: 'ctx.run(() => new Promise(() => {})); return {}' })),
    )
    await it.host.app.host.unload('one')
    expect(it.state()).toEqual({ one: 'disabled' })
    expect(it.error('one')).toBe('did not unload cleanly: 1 calls ignored the abort signal')
    expect(it.host.log.join('')).toContain('plugin "one" did not unload cleanly: 1 calls ignored the abort signal')
  })

  it('undoes newest first and does not stop at an undo that fails', async () => {
    await using it = await bench()
    const seen: string[] = []
    Object.assign(globalThis, { undoSeen: seen })
    const own = (label: string, extra = '') =>
      `ctx.own('${label}', () => { (globalThis as any).undoSeen.push('${label}'); ${extra} })`
    await it.host.app.host.load(
      await it.write(
        'one',
        pluginText('one', {
          setup: `${own('first')}; ${own('second', `throw new Error('stuck')`)}; ${own('third')}; return {}`,
        }),
      ),
    )
    await it.host.app.host.unload('one')
    expect(seen).toEqual(['third', 'second', 'first'])
    expect(it.error('one')).toBe('did not unload cleanly: stuck')
  })

  it('refuses an unknown name', async () => {
    await using it = await bench()
    await expect(it.host.app.host.unload('nobody')).rejects.toMatchObject({ code: 'plugin_not_found' })
  })
})

describe('reloading a plugin', () => {
  it('serves the edited code, also of a file it imports', async () => {
    await using it = await bench()
    const folder = await it.write(
      'one',
      pluginText('one', {
        before: `import { text } from './text.ts'`,
        setup: `${getRoute('one', 'text')}; return {}`,
      }),
    )
    await writePlugin(folder, `export const text: string = 'old'\n`, 'text.ts')
    await it.host.app.host.load(folder)
    expect((await it.host.json('GET', '/api/one')).body).toEqual({ text: 'old' })
    await writePlugin(folder, `export const text: string = 'new'\n`, 'text.ts')
    await it.host.app.host.reload('one')
    expect((await it.host.json('GET', '/api/one')).body).toEqual({ text: 'new' })
    expect(it.host.app.daemon.plugins()).toMatchObject([{ name: 'one', reloads: 1, error: undefined }])
  })

  it('leaves the old code serving when the new does not parse, and shows file and line', async () => {
    await using it = await bench()
    const folder = await it.write('one', says('one', 'old'))
    await it.host.app.host.load(folder)
    await writePlugin(folder, 'const = nothing')
    await expect(it.host.app.host.reload('one')).rejects.toMatchObject({ code: 'conflict' })
    expect((await it.host.json('GET', '/api/one')).body).toEqual({ text: 'old' })
    expect(it.error('one')).toMatch(/^not reloaded, the code before goes on: .*one\/index\.ts:1:/)
    expect(it.host.log.join('')).toMatch(/plugin "one" not reloaded, the code before goes on: .*one\/index\.ts:1:/)
  })

  it('sets the old code up again when the setup of the new fails, and reports both facts', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('base', providing('base', 'old')))
    await it.host.app.host.load(await it.write('user', needing('user', 'base')))
    await it.write(
      'base',
      pluginText('base', {
        before: `const T = defineService<object>()('base')`,
        members: 'provides: { it: T },',
        setup: `throw new Error('no disk')`,
      }),
    )
    await expect(it.host.app.host.reload('base')).rejects.toThrow(
      'not reloaded, the code before goes on: setup failed: no disk',
    )
    expect(it.state()).toEqual({ base: 'loaded', user: 'loaded' })
    expect((await it.host.json('GET', '/api/user')).body).toEqual({ text: 'old' })
    expect(it.error('base')).toMatch(
      /^not reloaded, the code before goes on: setup failed: no disk \(\S+\/base\/index\.ts:\d+:\d+\)$/,
    )
  })

  it('gives those that require it the new service', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('base', providing('base', 'old')))
    await it.host.app.host.load(await it.write('user', needing('user', 'base')))
    await it.write('base', providing('base', 'new'))
    await it.host.app.host.reload('base')
    expect((await it.host.json('GET', '/api/user')).body).toEqual({ text: 'new' })
  })

  it('touches nobody outside the subtree', async () => {
    await using it = await bench()
    const setups: string[] = []
    Object.assign(globalThis, { setupsSeen: setups })
    const noted = (name: string, text: string) =>
      text.replace('async setup(ctx: any) {', `async setup(ctx: any) { (globalThis as any).setupsSeen.push('${name}');`)
    await it.host.app.host.load(await it.write('base', noted('base', providing('base', 'b'))))
    await it.host.app.host.load(await it.write('user', noted('user', needing('user', 'base'))))
    await it.host.app.host.load(await it.write('other', noted('other', says('other', 'o'))))
    await it.host.app.host.reload('base')
    expect(setups).toEqual(['base', 'user', 'other', 'base', 'user'])
  })

  it('is refused when the new code drops a service that others require', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('base', providing('base', 'b')))
    await it.host.app.host.load(await it.write('user', needing('user', 'base')))
    await it.write('base', says('base', 'changed'))
    await expect(it.host.app.host.reload('base')).rejects.toThrow(
      'plugin "user" needs service "base", which no plugin provides',
    )
    expect(it.state()).toEqual({ base: 'loaded', user: 'loaded' })
  })

  it('is refused when the new code would close a cycle', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('base', providing('base', 'b')))
    await it.host.app.host.load(await it.write('user', needing('user', 'base')))
    await it.write('base', needing('base', 'user'))
    await expect(it.host.app.host.reload('base')).rejects.toThrow(
      /plugins require each other: (base -> user -> base|user -> base -> user)/,
    )
  })

  it('keeps requests for it waiting until the new code answers', async () => {
    await using it = await bench()
    const folder = await it.write('one', says('one', 'old'))
    await it.host.app.host.load(folder)
    const entered = Promise.withResolvers<void>()
    const open = Promise.withResolvers<void>()
    Object.assign(globalThis, { setupGate: { entered: () => entered.resolve(), open: open.promise } })
    await writePlugin(
      folder,
      says('one', 'new').replace(
        'async setup(ctx: any) {',
        'async setup(ctx: any) { (globalThis as any).setupGate.entered(); await (globalThis as any).setupGate.open;',
      ),
    )
    const reloaded = it.host.app.host.reload('one')
    await entered.promise
    const answer = it.host.json('GET', '/api/one')
    open.resolve()
    expect(await answer).toMatchObject({ status: 200, body: { text: 'new' } })
    await reloaded
  })

  it('can be asked for by a request of the plugin itself: it starts after the reply', async () => {
    // Longer than a test may take: a reload that waits for its own request fails it.
    await using it = await bench({ config: { plugins: { drain_ms: 600_000 } } })
    const text = pluginText('one', {
      before: `import { Daemon } from 'svc/internal'`,
      members: 'requires: { daemon: Daemon },',
      setup: `ctx.routes.add(defineRoute({
        method: 'POST', path: '/api/one/reload', summary: 'x', auth: 'public', effect: 'conversation', cost: 1,
        status: 202, returns: v.object({ state: v.string() }),
        handle() {
          ctx.services.daemon.reload('one')
          return { state: ctx.services.daemon.plugins()[0].state }
        } }))
      return {}`,
    })
    await it.host.app.host.load(await it.write('one', text))
    expect(await it.host.json('POST', '/api/one/reload')).toMatchObject({ status: 202, body: { state: 'loaded' } })
    await it.host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
  })

  it('can be awaited by a request of a plugin that is not touched', async () => {
    await using it = await bench()
    const admin = pluginText('admin', {
      before: `import { Daemon } from 'svc/internal'`,
      members: 'requires: { daemon: Daemon },',
      setup: `ctx.routes.add(defineRoute({
        method: 'POST', path: '/api/admin', summary: 'x', auth: 'public', effect: 'conversation', cost: 1,
        returns: v.object({ done: v.boolean() }),
        async handle() { await ctx.services.daemon.reload('one'); return { done: true } } })); return {}`,
    })
    await it.host.app.host.load(await it.write('admin', admin))
    await it.host.app.host.load(await it.write('one', says('one', 'x')))
    expect((await it.host.json('POST', '/api/admin')).body).toEqual({ done: true })
    expect(it.host.app.daemon.plugins().find(({ name }) => name === 'one')?.reloads).toBe(1)
  })

  it('happens one at a time', async () => {
    await using it = await bench()
    await it.host.app.host.load(await it.write('one', says('one', 'x')))
    await it.host.app.host.load(await it.write('two', says('two', 'x')))
    await Promise.all([it.host.app.host.reload('one'), it.host.app.host.reload('two'), it.host.app.host.reload('one')])
    expect(it.host.app.daemon.plugins().map(({ name, reloads }) => [name, reloads])).toEqual([
      ['one', 2],
      ['two', 1],
    ])
  })

  it('applies the migrations that came with the new code', async () => {
    await using it = await bench()
    const migration = (index: number): string => `{ id: '${index}', sql: 'CREATE TABLE one_t${index} (x INTEGER)' }`
    const withTables = (count: number) =>
      pluginText('one', {
        members: `migrations: [${Array.from({ length: count }, (_, index) => migration(index)).join(', ')}],`,
        setup: `await ctx.db.all\`SELECT x FROM one_t${count - 1}\`; return {}`,
      })
    await it.host.app.host.load(await it.write('one', withTables(1)))
    await it.write('one', withTables(2))
    await it.host.app.host.reload('one')
    expect(it.error('one')).toBeUndefined()
  })
})

describe('a service that may come and go', () => {
  it('is there only while its plugin is loaded', async () => {
    await using it = await bench()
    const asking = pluginText('asking', {
      before: `const Maybe = defineService<{ value(): string }>()('base')`,
      members: 'optional: { maybe: Maybe },',
      setup: `${getRoute('asking', "ctx.optional('maybe')?.value() ?? 'none'")}; return {}`,
    })
    await it.host.app.host.load(await it.write('asking', asking))
    expect((await it.host.json('GET', '/api/asking')).body).toEqual({ text: 'none' })
    await it.host.app.host.load(await it.write('base', providing('base', 'some')))
    expect((await it.host.json('GET', '/api/asking')).body).toEqual({ text: 'some' })
    await it.host.app.host.unload('base')
    expect((await it.host.json('GET', '/api/asking')).body).toEqual({ text: 'none' })
  })
})
