import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { definePlugin, defineService } from 'svc/sdk'
import { describe, expect, it } from 'vitest'
import { AcceptedPermissionsFile } from '../../../core/host/accepted-permissions.ts'
import { newPermissions, permissionsOf } from '../../../core/host/permissions.ts'
import type { KeyValueStorage, StoredValue } from '../../../core/storage/key-value.ts'
import type { AnyPlugin } from '../../../core/host/define.ts'
import { startHost } from '../../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'

describe('the permissions of a definition', () => {
  it('are a sorted list of everything it uses', () => {
    const definition = definePlugin({
      name: 'weather',
      version: '1.0.0',
      config: v.object({}),
      sections: { forecast: v.optional(v.string()) },
      requires: { agents: defineService<object>()('agents') },
      outbound: 'operator',
      pages: [{ path: 'map', title: 'Map', file: 'map.html' }],
      uses: {
        routes: ['/api/weather/*'],
        hooks: ['chat:turn-ended'],
        tools: ['weather_now'],
        hosts: ['api.example.org'],
        tables: true,
        secrets: ['api-key'],
        programs: ['git'],
        jobs: true,
        listeners: false,
      },
      setup: () => ({}),
    })
    expect(permissionsOf(definition as unknown as AnyPlugin)).toEqual([
      'hook:chat:turn-ended',
      'host:api.example.org',
      'jobs',
      'outbound:operator',
      'page:map',
      'program:git',
      'route:/api/weather/*',
      'secret:api-key',
      'section:forecast',
      'service:agents',
      'tables',
      'tool:weather_now',
    ])
  })

  it.each([
    [['host:a.example'], ['host:a.example', 'host:b.example', 'jobs'], ['host:b.example', 'jobs']],
    [['host:*.example'], ['host:a.example'], []],
    [['host:a.example'], ['host:*.example'], ['host:*.example']],
    [['route:/api/a/*'], ['route:/api/a', 'route:/api/ab'], ['route:/api/ab']],
    [['secret:*'], ['secret:key'], []],
    [[], ['tables'], ['tables']],
  ])('after %j, %j adds %j', (before, after, added) => {
    expect(newPermissions(before, after)).toEqual(added)
  })
})

describe('accepted permissions', () => {
  it('are kept by folder, also where the home is moved', async () => {
    await using home = await temporaryFolder()
    const folder = join(home.path, 'plugins/weather')
    const accepted = new AcceptedPermissionsFile(home.path)
    expect(accepted.of(folder)).toBeUndefined()
    await Promise.all([accepted.accept(folder, ['jobs', 'host:a']), accepted.accept(`${folder}-2`, [])])
    const again = new AcceptedPermissionsFile(home.path)
    expect(again.of(folder)).toEqual(['host:a', 'jobs'])
    expect(again.of(`${folder}-2`)).toEqual([])
    expect(again.of(join(home.path, 'plugins/constructor'))).toBeUndefined()
    await again.forget(folder)
    expect(accepted.of(folder)).toBeUndefined()
  })

  it('of homes that share a database are kept for each by itself', async () => {
    await using one = await temporaryFolder()
    await using two = await temporaryFolder()
    const stored = new Map<string, StoredValue>()
    const storage = {
      getItem: async (key: string) => stored.get(key) ?? null,
      setItem: async (key: string, value: StoredValue) => void stored.set(key, value),
    } as KeyValueStorage
    const open = async (home: string): Promise<AcceptedPermissionsFile> => {
      const accepted = new AcceptedPermissionsFile(home)
      await accepted.open(storage, home)
      return accepted
    }
    const [first, second] = [await open(one.path), await open(two.path)]
    await second.accept(join(two.path, 'plugins/weather'), [])
    await first.accept(join(one.path, 'plugins/other'), [])
    await rm(join(two.path, 'accepted-permissions.json'))
    expect((await open(two.path)).problem(join(two.path, 'plugins/weather'))).toContain('what it may use is unknown')
    expect((await open(one.path)).problem(join(one.path, 'plugins/weather'))).toBeUndefined()
  })

  it.each(['{', '[]', '{"plugins/weather": "all"}'])('a damaged file accepts nothing: %s', async (text) => {
    await using home = await temporaryFolder()
    await writeFile(join(home.path, 'accepted-permissions.json'), text)
    const accepted = new AcceptedPermissionsFile(home.path)
    const folder = join(home.path, 'plugins/weather')
    expect(accepted.of(folder)).toBeUndefined()
    expect(accepted.problem(folder)).toMatch(
      /accepted-permissions\.json is damaged: restore it, or run `svc plugin add <source> --update`/,
    )
  })

  it.each([
    ['is gone', undefined, /lacks it; restore it, or run `svc plugin add <source> --update`/],
    ['is damaged', '{', /is damaged; restore it/],
    ['lacks it', '{}', /lacks it; restore it/],
  ])('refuse an installed plugin and no other when the file %s, also after a restart', async (_, text, reason) => {
    await using home = await startHost({ plugins: [] })
    const installed = join(home.home, 'plugins/installed')
    const file = join(home.home, 'accepted-permissions.json')
    await home.app.host.load(await writePlugin(join(home.home, 'plugins/acceptor'), acceptor))
    await home.json('POST', '/api/accept', { folder: installed, permissions: [] })
    await writePlugin(installed, pluginText('installed'))
    await home.stop()
    await (text === undefined ? rm(file) : writeFile(file, text))

    await using again = await startHost({ plugins: [], home: home.home })
    const status = (name: string) => again.app.daemon.plugins().find((one) => one.name === name)
    expect(status('acceptor')).toMatchObject({ state: 'loaded', access: 'unrestricted' })
    expect(status('installed')).toMatchObject({ state: 'failed', error: expect.stringMatching(reason) })
    // As `svc plugin add --update` does.
    await again.json('POST', '/api/accept', { folder: installed, permissions: ['jobs'] })
    await again.app.host.reload('installed')
    expect(status('installed')).toMatchObject({ state: 'loaded', access: 'declared', error: undefined })
    if (text === '{') expect(await readFile(`${file}.damaged`, 'utf8')).toBe('{')
  })
})

const acceptor = pluginText('acceptor', {
  members: `requires: { accepted: defineService()('accepted-permissions') },`,
  setup: `ctx.routes.add(defineRoute({ method: 'POST', path: '/api/accept', summary: 'A test', auth: 'public', effect: 'read',
    cost: 1, body: v.object({ folder: v.string(), permissions: v.array(v.string()) }), returns: v.any(),
    handle: async ({ body }) => { await ctx.services.accepted.accept(body.folder, body.permissions); return {} } }))
    return {}`,
})
