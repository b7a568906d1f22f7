import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { definePlugin, defineService } from 'svc/sdk'
import { describe, expect, it } from 'vitest'
import { openAcceptedPermissions } from '../../../core/host/accepted-permissions.ts'
import { newPermissions, permissionsOf } from '../../../core/host/permissions.ts'
import type { AnyPlugin } from '../../../core/host/define.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

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
    const accepted = openAcceptedPermissions(home.path)
    expect(accepted.of(folder)).toBeUndefined()
    await Promise.all([accepted.accept(folder, ['jobs', 'host:a']), accepted.accept(`${folder}-2`, [])])
    const again = openAcceptedPermissions(home.path)
    expect(again.of(folder)).toEqual(['host:a', 'jobs'])
    expect(again.of(`${folder}-2`)).toEqual([])
    expect(again.of(join(home.path, 'plugins/constructor'))).toBeUndefined()
    await again.forget(folder)
    expect(accepted.of(folder)).toBeUndefined()
  })

  it.each(['{', '[]', '{"plugins/weather": "all"}'])('a damaged file accepts nothing: %s', async (text) => {
    await using home = await temporaryFolder()
    await writeFile(join(home.path, 'accepted-permissions.json'), text)
    expect(() => openAcceptedPermissions(home.path).of(join(home.path, 'plugins/weather'))).toThrow(
      'accepted-permissions.json is damaged: restore it, or install the plugins again',
    )
  })
})
