import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

const route = (fields: string): string =>
  `ctx.routes.add({ method: 'GET', path: '/api/broken', summary: 'x', auth: 'bearer', effect: 'read', cost: 1, returns: v.object({}), handle: () => ({}), ${fields} }); return {}`
const socket = (fields: string): string =>
  `ctx.routes.addSocket({ path: '/broken', summary: 'x', auth: 'bearer', effect: 'read', cost: 1, frameCost: 1, accept: () => ({}), open() {}, frame() {}, ${fields} }); return {}`
const tool = (fields: string): string =>
  `ctx.tools.add({ name: 'broken', description: 'x', input: v.object({}), risk: 'read', run: async () => '', ${fields} }); return {}`

const broken: readonly (readonly [what: string, setup: string, message: string])[] = [
  [
    'a route without a cost',
    route('cost: undefined'),
    'route GET /api/broken: cost is missing; write how many limiter tokens',
  ],
  [
    'a route without a handler',
    route('handle: undefined'),
    'route GET /api/broken: handle is missing; write a function such as',
  ],
  ['a route with a wrong auth', route(`auth: 'barer'`), 'auth is "barer"; write one of public, bearer, signed'],
  [
    'a route with a wrong effect',
    route(`effect: 'reads'`),
    'effect is "reads"; write one of read, conversation, own, lasting',
  ],
  [
    'a route with a wrong method',
    route(`method: 'FETCH'`),
    'route FETCH /api/broken: method is "FETCH"; write one of GET, POST',
  ],
  [
    'a route with a wrong path',
    route(`path: 'api/broken'`),
    'path is "api/broken"; write a path that begins with a slash',
  ],
  ['a route without what it returns', route('returns: undefined'), 'returns is missing; write a valibot schema'],
  [
    'a route with two mistakes',
    route('cost: -1, summary: 7'),
    'summary is 7; write a text such as "List the things". cost is -1',
  ],
  ['no route at all', 'ctx.routes.add(undefined); return {}', 'route without a path: it is missing; write an object'],
  ['a socket without a cost of frames', socket('frameCost: undefined'), 'WebSocket /broken: frameCost is missing'],
  ['a socket that accepts signatures', socket(`auth: 'signed'`), 'auth is "signed"; write one of public, bearer'],
  [
    'a tool with a wrong name',
    tool(`name: 'Broken Tool'`),
    'tool Broken Tool: name is "Broken Tool"; write snake_case',
  ],
  [
    'a tool with a wrong schema',
    tool(`input: { type: 'object' }`),
    'tool broken: input is a value of type object; write a valibot schema',
  ],
  ['a tool with a wrong risk', tool(`risk: 'reed'`), 'risk is "reed"; write one of read, write, execute'],
  [
    'a job without a schedule',
    `ctx.jobs.cron('tidy', undefined, async () => {}); return {}`,
    'job tidy: expression is missing; write minute, hour',
  ],
  [
    'a job with a wrong schedule',
    `ctx.jobs.cron('tidy', 'every day', async () => {}); return {}`,
    'expression is "every day"',
  ],
  [
    'a job that never waits',
    `ctx.jobs.every('tidy', 0, async () => {}); return {}`,
    'job tidy: ms is 0; write milliseconds',
  ],
  ['a job without work', `ctx.jobs.every('tidy', 1000); return {}`, 'job tidy: run is missing'],
]

describe('a plugin is refused with what to write instead when it registers', () => {
  it.each(broken)('%s', async (_what, setup, message) => {
    await using folder = await temporaryFolder()
    await using host = await startHost({ plugins: [], memory: true, listen: false })
    const plugin = await writePlugin(join(folder.path, 'broken'), pluginText('broken', { setup }))
    const loading = host.app.host.load(plugin)
    await expect(loading).rejects.toThrow(message)
    await expect(loading).rejects.toThrow('plugin "broken"')
    expect(host.app.registrations().filter((line) => line.includes('broken'))).toEqual([])
  })

  it('a hook nobody declares, and names the nearest', async () => {
    await using folder = await temporaryFolder()
    await using host = await startHost({ plugins: ['events'], memory: true, listen: false })
    const setup = `ctx.hooks.on(notify('daemon:listenning'), () => {}); return {}`
    const plugin = await writePlugin(join(folder.path, 'broken'), pluginText('broken', { setup }))
    await expect(host.app.host.load(plugin)).rejects.toThrow('did you mean "daemon:listening"')
  })
})
