import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compile, installPackage } from '../support/installed-package.ts'
import type { InstalledPackage } from '../support/installed-package.ts'
import { temporaryFolder } from '../support/plugin-folder.ts'

const sound = `
import * as v from 'valibot'
import { definePlugin, defineRoute, defineService, defineSocket, defineTool, rawBody, Refusal } from 'svc/sdk'
import type { AnyPlugin, AnyRoute, AnySocketRoute, AnyTool, PluginContext } from 'svc/sdk'
import { Agents, AgentSpawned } from 'svc/contracts/agents'
import { defineProvider, estimateUsage } from 'svc/providers'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'

interface Counter { count(name: string): number }
const Counters = defineService<Counter>()('mine:counters')

export const provider = defineProvider('1.0.0', {
  name: 'mine', title: 'Mine', defaultModel: 'one', config: v.object({}),
  connect: () => ({
    async *complete(request: CompletionRequest): AsyncGenerator<CompletionEvent> {
      yield { type: 'text', delta: request.system }
      yield { type: 'end', stop: 'done', usage: estimateUsage(request, 1) }
    },
    models: async () => ['one'],
    probe: async () => ({ model: 'one' }),
  }),
})

const Page = v.pipe(v.string(), v.transform(Number))
export const routes: readonly AnyRoute[] = [
  defineRoute({
    method: 'PUT', path: '/api/mine/:name', summary: 'Next page', auth: 'bearer', effect: 'own', cost: 1,
    params: v.object({ name: v.string() }), query: v.object({ page: Page }), body: rawBody(100),
    returns: v.object({ next: v.number() }),
    effectOf: ({ params }) => (params.name === '' ? 'read' : 'own'),
    costOf: (body) => body.byteLength,
    handle: ({ query, body }) => ({ next: query.page + body.byteLength }),
  }),
]
export const sockets: readonly AnySocketRoute[] = [
  defineSocket({
    path: '/api/mine/:name/ws', summary: 'Frames', auth: 'bearer', effect: 'read', cost: 1, frameCost: 1,
    params: v.object({ name: v.string() }),
    accept: ({ params }) => ({ name: params.name }),
    open: (socket, { name }) => socket.send(name),
    frame: (socket, { name }, text) => socket.send(name + text),
  }),
]
export const tools: readonly AnyTool[] = [
  defineTool({
    name: 'next_page', description: 'Counts', risk: 'read', input: v.object({ page: Page }),
    assess: ({ page }) => ({ intent: 'read page ' + page.toFixed(0) }),
    run: async ({ page }) => String(page + 1),
  }),
]
export const plugins: readonly AnyPlugin[] = [
  definePlugin({
    name: 'other', version: '1.0.0', config: v.object({ page: Page }),
    sections: { other: v.optional(v.object({ a: v.number() })) },
    setup: (ctx) => { ctx.log.info(String(ctx.config.page + (ctx.config.other?.a ?? 0))); return {} },
  }),
]

export default definePlugin({
  name: 'mine', version: '1.0.0',
  config: v.object({ greeting: v.optional(v.string(), 'Hello') }),
  requires: { agents: Agents },
  provides: { counter: Counters },
  setup(ctx) {
    const seen = new Map<string, number>()
    ctx.hooks.on(AgentSpawned, async ({ agent }) => { seen.set(agent.name, ctx.config.greeting.length) })
    ctx.routes.add(defineRoute({
      method: 'GET', path: '/api/mine/:name', summary: 'How often', auth: 'bearer', effect: 'read', cost: 1,
      params: v.object({ name: v.string() }), returns: v.object({ count: v.number() }),
      handle: ({ params }) => {
        const count = seen.get(params.name)
        if (count === undefined) throw new Refusal('name_not_found', 'Nobody has this name')
        return { count }
      },
    }))
    ctx.tools.add(defineTool({
      name: 'mine', description: 'Counts', risk: 'read', input: v.object({ name: v.string() }),
      run: async ({ name }) => String(seen.get(name) ?? 0),
    }))
    ctx.jobs.every('tidy', 60_000, async (signal) => { signal.throwIfAborted(); seen.clear() })
    return { counter: { count: (name) => seen.get(name) ?? 0 } }
  },
})
export type Context = PluginContext<{ readonly greeting: string }, {}, {}>
`
/** Each line with the mistake the compiler has to find in it. */
const wrong = `
import * as v from 'valibot'
import { definePlugin, defineRoute, Refusal } from 'svc/sdk'
import { Agents, AgentSpawned } from 'svc/contracts/agents'
import { Nothing } from 'svc/contracts/agents' // no exported member
import 'svc/contracts/nothing-of-this-name' // Cannot find module
export const a = defineRoute({ method: 'FETCH', path: '/api/a', summary: 'a', auth: 'public', effect: 'read', cost: 1, returns: v.string(), handle: () => 'a' }) // "FETCH"
export const b = defineRoute({ method: 'GET', path: '/api/b', summary: 'b', auth: 'public', effect: 'read', returns: v.string(), handle: () => 'a' }) // cost
export const c = defineRoute({ method: 'GET', path: '/api/c', summary: 'c', auth: 'public', effect: 'read', cost: 1, returns: v.number(), handle: () => 'text' }) // number
export const d = definePlugin({ name: 'd', version: '1.0.0', config: v.object({}), requires: { agents: Agents }, setup: (ctx) => { ctx.hooks.on(AgentSpawned, ({ nobody }) => undefined); return {} } }) // nobody
export const e = definePlugin({ name: 'e', version: '1.0.0', config: v.object({ size: v.number() }), setup: ({ config }) => { config.length; return {} } }) // length
export const f = new Refusal(404, 'not a code') // ErrorCode
export const g = definePlugin({ name: 'g', version: '1.0.0', config: v.object({}), provides: { agents: Agents }, setup: () => ({}) }) // agents
export { Nothing }
`
const strict = {
  strict: true,
  exactOptionalPropertyTypes: true,
  target: 'esnext',
  lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'],
  types: [],
  noEmit: true,
}
const node16 = { compilerOptions: { ...strict, module: 'node16', moduleResolution: 'node16' } }
const bundler = { compilerOptions: { ...strict, module: 'esnext', moduleResolution: 'bundler' } }

describe('the types of a plugin outside the repository', () => {
  let installed: InstalledPackage
  beforeAll(async () => {
    installed = await installPackage()
  })
  afterAll(async () => {
    await installed[Symbol.asyncDispose]()
  })

  async function project(folder: string, config: object): Promise<string> {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'index.ts'), sound)
    const file = join(folder, 'tsconfig.json')
    await writeFile(file, JSON.stringify({ ...config, include: ['*.ts'] }))
    return file
  }

  it('are found with moduleResolution bundler', async () => {
    expect(await compile(await project(join(installed.folder, 'bundler'), bundler))).toEqual([])
  })

  it('are found from a folder without packages, by extending the tsconfig of the installation', async () => {
    await using home = await temporaryFolder()
    const folder = join(home.path, 'plugins/mine')
    const config = { extends: join(installed.root, 'dist/types/tsconfig.json') }
    expect(await compile(await project(folder, config))).toEqual([])
  })

  it('are found with moduleResolution node16, and refuse a wrong use beside it, each in its line', async () => {
    const folder = join(installed.folder, 'node16')
    const file = await project(folder, node16)
    await writeFile(join(folder, 'wrong.ts'), wrong)
    const found = await compile(file)
    const lines = wrong.split('\n')
    const expected = lines.flatMap((line, index) => {
      const word = /\/\/ (.+)$/.exec(line)?.[1]
      return word === undefined ? [] : [{ at: `wrong.ts(${index + 1},`, word }]
    })
    for (const { at, word } of expected)
      expect(
        found.some((line) => line.startsWith(at) && line.includes(word)),
        `${at} ${word} in ${found.join('\n')}`,
      ).toBe(true)
    // Further lines of an error are indented.
    const places = found.filter((line) => !/^\s/.test(line))
    expect(places.filter((line) => !expected.some(({ at }) => line.startsWith(at)))).toEqual([])
  })
})
