import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PluginChange } from 'svc/internal'
import { describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, routeText, writePlugin } from '../../support/plugin-folder.ts'

type Config = NonNullable<Parameters<typeof startHost>[0]>['config']
/** A daemon, and every change of a plugin it announces. */
async function open(config: Config = {}, plugins: readonly string[] = []) {
  const host = await startHost({ plugins, listen: false, memory: true, config })
  const changes: PluginChange[] = []
  const waiting: { change: string; resolve: (value: PluginChange) => void }[] = []
  Object.assign(globalThis, {
    onPluginChange(change: PluginChange) {
      changes.push(change)
      for (const one of waiting) if (one.change === change.change) one.resolve(change)
    },
  })
  const observer = `ctx.hooks.on(notify('daemon:plugin-changed'), (change) => (globalThis as any).onPluginChange(change))`
  await host.app.host.load(
    await writePlugin(join(host.home, 'observer'), pluginText('observer', { setup: `${observer}; return {}` })),
  )
  changes.length = 0
  const load = async (name: string, text: string): Promise<void> =>
    host.app.host.load(await writePlugin(join(host.home, name), text))
  return {
    host,
    changes,
    load,
    edit: (name: string, text: string) => writePlugin(join(host.home, name), text),
    changed: (change: string) =>
      new Promise<PluginChange>((resolve) => {
        waiting.push({ change, resolve })
      }),
    status: (name: string) => host.app.daemon.plugins().find((plugin) => plugin.name === name),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
    },
  }
}
const text = (host: TestHost, path: string) => host.json<{ text: string }>('GET', path).then(({ body }) => body.text)
const cause = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const base = (value: string) =>
  pluginText('base', {
    before: `const Token = defineService<{ value(): string }>()('base')`,
    members: 'provides: { it: Token },',
    setup: `${routeText('/api/base', value)}; return { it: { value: () => '${value}' } }`,
  })
const user = (name: string) =>
  pluginText(name, {
    before: `const Needed = defineService<{ value(): string }>()('base')`,
    members: 'requires: { needed: Needed },',
    setup: `if (ctx.services.needed.value() === 'bad') throw new Error('cannot use it')
      ${routeText(`/api/${name}`, name)}
      return {}`,
  })

describe('a reload whose new code breaks those that require it', () => {
  it('leaves all of them as they were, and says which failed', async () => {
    await using it = await open()
    await it.load('base', base('good'))
    await it.load('first', user('first'))
    await it.load('second', user('second'))
    await it.load('apart', pluginText('apart', { setup: `${routeText('/api/apart', 'apart')}; return {}` }))
    it.changes.length = 0
    await it.edit('base', base('bad'))
    expect(await it.host.app.host.reload('base').catch(cause)).toMatch(
      new RegExp(
        '^Plugin "base" was not reloaded, the code before goes on: plugin "first" fails with the new code: ' +
          String.raw`setup failed: cannot use it \(\S+/first/index\.ts:\d+:\d+\)$`,
      ),
    )
    for (const [name, value] of [
      ['base', 'good'],
      ['first', 'first'],
      ['second', 'second'],
      ['apart', 'apart'],
    ] as const)
      expect(await text(it.host, `/api/${name}`)).toBe(value)
    expect(it.status('first')).toMatchObject({ state: 'loaded', error: undefined })
    expect(it.status('base')).toMatchObject({ state: 'loaded', reloads: 0 })
    expect(it.changes.map(({ plugin, change }) => `${plugin} ${change}`)).toEqual(['base failed'])
    await it.edit('base', base('better'))
    await it.host.app.host.reload('base')
    expect(await text(it.host, '/api/base')).toBe('better')
    expect(it.status('base')).toMatchObject({ reloads: 1, error: undefined })
  })
})

/** A plugin with a stream that goes on when told, and that says which signals fired. */
const streaming = (version: string, members = '') =>
  pluginText('streaming', {
    members,
    setup: `const control = (globalThis as any).streamControl
      ctx.leaving.addEventListener('abort', () => control.events.push('${version} leaving'))
      ctx.signal.addEventListener('abort', () => control.events.push('${version} aborted'))
      ctx.own('connection', () => control.events.push('${version} closed'))
      ${routeText('/api/version', version)}
      ctx.routes.add(defineRoute({
        method: 'GET', path: '/api/stream', summary: 'A stream', auth: 'public', effect: 'read', cost: 1,
        streams: v.object({}), returns: v.object({}),
        handle: ({ signal }: any) => ({ async *[Symbol.asyncIterator]() {
          yield { data: '{"from":"${version}"}' }
          await Promise.race([control.open, new Promise((resolve) => signal.addEventListener('abort', resolve))])
          signal.throwIfAborted()
          yield { data: '{"end":"${version}"}' }
        } }),
      }) as any)
      return {}`,
  })
function control() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const events: string[] = []
  Object.assign(globalThis, { streamControl: { open: promise, events } })
  return { finish: resolve, events }
}
/** Starts to read the stream, up to its first event. Returns the rest. */
async function startStream(host: TestHost): Promise<() => Promise<string>> {
  const response = await host.fetch('/api/stream')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let all = (await reader.read()).value ?? ''
  return async () => {
    for (let read = await reader.read(); !read.done; read = await reader.read()) all += read.value
    return all
  }
}
/** Settles at the first change of the host after which the condition holds. */
const until = (host: TestHost, holds: () => boolean) =>
  new Promise<void>((resolve) => {
    const check = (): void => (holds() ? resolve() : void setImmediate(check))
    check()
  })

describe('calls that run while their plugin is reloaded', () => {
  it('go on in the old code while the new code serves', async () => {
    await using it = await open({ plugins: { drain_ms: 5 } })
    const { finish, events } = control()
    await it.load('streaming', streaming('old'))
    const rest = await startStream(it.host)
    await it.edit('streaming', streaming('new'))
    await it.host.app.host.reload('streaming')
    expect(await text(it.host, '/api/version')).toBe('new')
    expect(events).toEqual(['old leaving'])
    expect(it.status('streaming')).toMatchObject({ retired: 1, reloads: 1 })
    finish()
    expect(await rest()).toContain('{"end":"old"}')
    await until(it.host, () => it.status('streaming')?.retired === 0)
    expect(events).toEqual(['old leaving', 'old aborted', 'old closed'])
    expect(it.host.app.registrations().filter((line) => line.includes('/api/stream'))).toHaveLength(1)
  })

  it('are aborted after plugins.retire_ms', async () => {
    await using it = await open({ plugins: { drain_ms: 5, retire_ms: 20 } })
    const { events } = control()
    await it.load('streaming', streaming('old'))
    const rest = await startStream(it.host)
    await it.host.app.host.reload('streaming')
    expect(await rest()).toContain('service restart')
    expect(events.slice(0, 2)).toEqual(['old leaving', 'old aborted'])
    await until(it.host, () => it.status('streaming')?.retired === 0)
  })

  it('are aborted when there are more than plugins.retired_copies, and when the plugin is unloaded', async () => {
    await using it = await open({ plugins: { drain_ms: 5, retired_copies: 1 } })
    const { finish, events } = control()
    await it.load('streaming', streaming('1'))
    for (const version of ['2', '3']) {
      await startStream(it.host)
      await it.edit('streaming', streaming(version))
      await it.host.app.host.reload('streaming')
    }
    await until(it.host, () => events.includes('1 aborted'))
    expect(events).not.toContain('2 aborted')
    finish()
    await it.host.app.host.unload('streaming')
    expect(events).toContain('2 closed')
    expect(it.status('streaming')).toMatchObject({ retired: 0, state: 'disabled' })
  })

  it('are waited for, and aborted after plugins.drain_ms, where the plugin is exclusive', async () => {
    await using it = await open({ plugins: { drain_ms: 5 } })
    const { events } = control()
    await it.load('streaming', streaming('old', `reload: 'exclusive',`))
    const rest = await startStream(it.host)
    await it.host.app.host.reload('streaming')
    expect(events).toEqual(['old leaving', 'old aborted', 'old closed'])
    expect(it.status('streaming')).toMatchObject({ retired: 0 })
    expect(await rest()).toContain('service restart')
  })
})

/** A route, a tool, a listener or a job that fails for every other call or always. */
const failing = (version: string, how: string) =>
  pluginText('failing', {
    before: 'let count = 0',
    setup: `${routeText('/api/failing', version, how)}; return {}`,
  })

describe('a reloaded plugin whose calls fail', () => {
  const settings = { plugins: { revert_failures: 3, revert_percent: 50 } }
  const call = async (host: TestHost, times: number): Promise<void> => {
    for (let time = 0; time < times; time++) await host.fetch('/api/failing')
  }
  const reload = async (it: Awaited<ReturnType<typeof open>>, version: string, how: string): Promise<void> => {
    await it.edit('failing', failing(version, how))
    await it.host.app.host.reload('failing')
  }

  it('goes back to the code before, and says why in status, log, hook and warnings', async () => {
    await using it = await open(settings)
    await it.load('failing', failing('good', ''))
    await call(it.host, 10)
    await reload(it, 'bad', `throw new Error('broken')`)
    const reverted = it.changed('reverted')
    await call(it.host, 3)
    expect(await reverted).toMatchObject({
      plugin: 'failing',
      change: 'reverted',
      reason: expect.stringMatching(/^3 of \d calls failed, the last one with: broken$/) as string,
    })
    expect(await text(it.host, '/api/failing')).toBe('good')
    expect(it.status('failing')?.error).toMatch(/^went back to the code before: 3 of \d calls failed/)
    expect(it.host.log.join('')).toContain('plugin "failing" went back to the code before')
    expect(it.host.app.daemon.warnings().join()).toContain('went back to the code before')
    expect(it.host.defects()).toHaveLength(3)
    // A repaired version is taken as usual.
    await reload(it, 'repaired', '')
    expect(await text(it.host, '/api/failing')).toBe('repaired')
    expect(it.status('failing')?.error).toBeUndefined()
  })

  it.each([
    ['its calls are refused', `throw new Refusal('conflict', 'no')`, settings],
    ['few of many fail', `if (++count % 4 === 0) throw new Error('rare')`, settings],
    ['it is not watched', `throw new Error('broken')`, { plugins: { ...settings.plugins, watch_ms: 0 } }],
  ])('stays where %s', async (_case, how, config) => {
    await using it = await open(config)
    await it.load('failing', failing('good', ''))
    await reload(it, 'new', how)
    await call(it.host, 12)
    await it.host.app.host.reload('observer')
    expect(it.changes.map(({ change }) => change)).not.toContain('reverted')
    it.host.defects()
  })

  it('stays where as many calls failed before', async () => {
    await using it = await open(settings)
    await it.load('failing', failing('bad', `throw new Error('broken')`))
    await call(it.host, 4)
    await reload(it, 'still bad', `throw new Error('broken')`)
    await call(it.host, 6)
    await it.host.app.host.reload('observer')
    expect(it.changes.map(({ change }) => change)).not.toContain('reverted')
    it.host.defects()
  })
})

describe('every change of a plugin', () => {
  it('is announced and audited, also one of a file', async () => {
    await using host = await startHost({
      plugins: ['audit'],
      memory: true,
      config: { plugins: { watch: true } },
    })
    const folder = join(host.home, 'plugins/one')
    await writePlugin(folder, pluginText('one'))
    await host.plugin('one', 'loaded')
    await writePlugin(folder, pluginText('one', { setup: `throw new Error('no')` }))
    await host.plugin('one', 'loaded', ({ error }) => error !== undefined)
    await writePlugin(folder, pluginText('one', { setup: 'return {} // again' }))
    await host.plugin('one', 'loaded', ({ reloads }) => reloads === 1)
    await host.app.host.unload('one')
    const entries = async (): Promise<readonly string[]> => {
      const { body } = await host.json<{ entries: { event_type: string; details: string }[] }>(
        'GET',
        '/api/audit/recent',
      )
      return body.entries.filter(({ event_type: type }) => type === 'plugin_changed').map(({ details }) => details)
    }
    const source = `plugin "one" 1.0.0 (${folder}):`
    expect([...(await entries())].sort()).toEqual([
      `${source} failed: not reloaded, the code before goes on: setup failed: no (${folder}/index.ts:8:11)`,
      `${source} loaded`,
      `${source} reloaded`,
      `${source} unloaded`,
    ])
  })
})

describe('a plugin that registers onConfigChange', () => {
  const taking = (take: string): string =>
    pluginText('taking', {
      members: `config: v.object({ word: v.optional(v.string(), 'first') }),`,
      setup: `let word = ctx.config.word
        ctx.routes.add(defineRoute({ method: 'GET', path: '/api/word', summary: 'The word', auth: 'public',
          effect: 'read', cost: 0, returns: v.object({ text: v.string() }),
          handle: async () => ({ text: word + ' since ' + ctx.config.word }) }))
        ctx.onConfigChange(async (next) => { word = next.word; ${take} })
        return {}`,
    })

  it.each([
    ['takes the new values and goes on', 'return true', 'next since first', 'reconfigured', 0],
    ['is set up again where it cannot take them', 'return false', 'next since next', 'reloaded', 1],
    ['is set up again when it fails', `throw new Error('no')`, 'next since next', 'reloaded', 1],
  ])('%s', async (_title, take, expected, change, reloads) => {
    await using it = await open({}, ['settings', 'audit'])
    await it.load('taking', taking(take))
    await writeFile(join(it.host.home, 'config.toml'), '[plugins.taking]\nword = "next"\n')
    const { body } = await it.host.json('POST', '/api/config/reload')
    expect(body).toMatchObject({ status: 'applied', hot_actions_applied: ['taking'] })
    expect(await text(it.host, '/api/word')).toBe(expected)
    expect(it.changes.at(-1)).toMatchObject({ plugin: 'taking', change })
    expect(it.status('taking')).toMatchObject({ state: 'loaded', reloads })
  })
})

describe('a plugin whose file becomes a folder', () => {
  it('is loaded from there at once', async () => {
    await using host = await startHost({ plugins: [], memory: true, config: { plugins: { watch: true } } })
    const parent = join(host.home, 'plugins')
    await writePlugin(parent, pluginText('one', { setup: `${routeText('/api/one', 'hi')}; return {}` }), 'one.ts')
    await host.plugin('one', 'loaded')
    await mkdir(join(parent, 'one'))
    await rename(join(parent, 'one.ts'), join(parent, 'one/index.ts'))
    await host.plugin('one', 'loaded', ({ source }) => source === join(parent, 'one'))
    expect(await text(host, '/api/one')).toBe('hi')
  })
})
