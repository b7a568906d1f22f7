import { beforeAll, afterAll, describe, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { pack } from '../../support/plugin-registry.ts'
import { KEY, openStage } from './stage.ts'
import type { Stage } from './stage.ts'

// What a plugin has stored stays when it is removed, and is deleted when that is asked for.

const USES = "{ routes: ['/api/weather', '/api/weather-maps'], tables: true, secrets: ['api-key'] }"
const code = (name: string, table: string) => `import * as v from 'valibot'
import { definePlugin, defineRoute } from 'svc/sdk'
export default definePlugin({
  name: '${name}', version: '1.0.0', apiVersion: '^1.0.0', config: v.object({}), uses: ${USES},
  migrations: [
    { id: '001', sql: 'CREATE TABLE ${table}_city (id INTEGER PRIMARY KEY, name TEXT NOT NULL)' },
    { id: '002', sql: 'CREATE TABLE ${table}_visit (city INTEGER NOT NULL REFERENCES ${table}_city (id))' },
    { id: '003', sql: 'CREATE VIRTUAL TABLE ${table}_text USING fts5(body)' },
  ],
  setup({ db, routes, storage, vault }) {
    const route = { path: '/api/${name}', summary: 'Weather', auth: 'bearer', cost: 1 }
    const state = async () => ({
      rows: (await db.one\`SELECT count(*) AS count FROM ${table}_visit\`).count,
      value: await storage.getItem('unit'),
      secret: (await vault.read('api-key')) ?? null,
    })
    const State = v.object({ rows: v.number(), value: v.nullable(v.string()), secret: v.nullable(v.string()) })
    routes.add(
      defineRoute({ ...route, method: 'GET', effect: 'read', returns: State, handle: state }),
      defineRoute({
        ...route,
        method: 'POST',
        effect: 'lasting',
        returns: State,
        async handle() {
          await db.batch([
            db.sql\`INSERT INTO ${table}_city (id, name) VALUES (1, 'Ulm')\`,
            db.sql\`INSERT INTO ${table}_visit (city) VALUES (1)\`,
            db.sql\`INSERT INTO ${table}_text (body) VALUES ('rain in Ulm')\`,
          ])
          await storage.setItem('unit', 'kelvin')
          await vault.write('api-key', 'sunshine-17')
          return state()
        },
      }),
    )
    return {}
  },
})
`

let stage: Stage
beforeAll(async () => {
  stage = await openStage({}, { listen: true })
  await install('weather-maps', 'weather_maps')
  await stage.call('POST', '/api/weather-maps')
})
afterAll(() => stage[Symbol.asyncDispose]())

const full = { rows: 1, value: 'kelvin', secret: 'sunshine-17' }
const empty = { rows: 0, value: null, secret: null }
const stored = {
  tables: [
    { name: 'weather_city', rows: 1 },
    { name: 'weather_text', rows: 1 },
    { name: 'weather_visit', rows: 1 },
  ],
  values: 1,
  secrets: ['api-key'],
}

async function install(name = 'weather', table = 'weather'): Promise<void> {
  const files = {
    'package.json': JSON.stringify({ name: `svc-${name}`, type: 'module' }),
    'index.ts': code(name, table),
  }
  const { status, body } = await stage.install({ path: await stage.file(`${name}.tgz`, pack(files)) })
  expect([status, body.error?.message]).toEqual([201, undefined])
}
const state = async (name = 'weather') => (await stage.call('GET', `/api/${name}`)).body
const remove = (more: object = {}, name = 'weather') => stage.call('POST', '/api/plugins/uninstall', { name, ...more })

describe('what a plugin has stored', () => {
  it('is found again when it is installed again', async () => {
    await install()
    await stage.call('POST', '/api/weather')
    expect((await remove()).body).toEqual({ removed: true, name: 'weather', data: null })
    await install()
    expect(await state()).toEqual(full)
  })

  it('is named before it is deleted, and then is gone, with an entry in the audit trail that has no secret', async () => {
    expect((await remove({ delete_data: true, dry_run: true })).body).toEqual({
      removed: false,
      name: 'weather',
      data: stored,
    })
    expect(await state()).toEqual(full)
    expect((await remove({ delete_data: true })).body).toEqual({ removed: true, name: 'weather', data: stored })
    const audited = (await stage.audited()).join('\n')
    expect(audited).toContain('data of plugin "weather" deleted: tables with rows: weather_city (1), weather_text (1)')
    expect(audited).toContain('secrets: api-key')
    expect(audited).not.toContain('sunshine')
    await install()
    expect(await state()).toEqual(empty)
    expect(await state('weather-maps')).toEqual(full)
  })

  it('can be deleted when the plugin is removed already; then there is nothing left to remove', async () => {
    await stage.call('POST', '/api/weather')
    await remove()
    const svc = (...words: string[]) =>
      runHere(['plugin', 'remove', 'weather', '--delete-data', '--url', stage.host.url, ...words], { SVC_API_KEY: KEY })
    expect(await svc()).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/weather_visit \(1 rows\)[^]*api-key[^]*--yes/) as string,
    })
    expect(await svc('--yes')).toMatchObject({ code: 0, stdout: 'plugin "weather" removed, and its data deleted\n' })
    expect(await svc('--yes')).toMatchObject({ code: 4 })
    expect((await remove({ delete_data: true })).status).toBe(404)
    await install()
    expect(await state()).toEqual(empty)
  })

  it.each([
    ['audit', 409, 'is built in'],
    ['core', 404, 'No plugin "core"'],
    ['weathr', 404, 'weather'],
  ])('of %s is not deleted', async (name, status, message) => {
    const answer = await remove({ delete_data: true }, name)
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(message)])
  })
})
