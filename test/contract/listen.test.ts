import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

// Ports of plugins: the address is the configuration file's, the connections are limited, and nothing outlives them.

const port = (name: string, members: string): string =>
  pluginText(name, {
    before: `import { fileOnly, settable } from 'svc/sdk'`,
    members,
    setup: `
      const opened: any[] = []
      const tried = async (work: () => Promise<any>) => { try { return await work() } catch (error: any) { return error.code + ': ' + error.message } }
      ctx.routes.add(defineRoute({ method: 'POST', path: '/api/${name}/listen', summary: 'A test', auth: 'public', effect: 'own', cost: 1,
        body: v.any(), returns: v.any(), handle: async ({ body }: any) => await tried(async () => {
          const listener = await ctx.listen({ ...body, accept: (socket: any) => {
            socket.write('hello from ' + socket.remoteAddress + '\\n')
            socket.on('data', (bytes: Uint8Array) => socket.write(bytes)) } })
          opened.push(listener)
          return { host: listener.host, port: listener.port } }) }))
      ctx.routes.add(defineRoute({ method: 'POST', path: '/api/${name}/close', summary: 'A test', auth: 'public', effect: 'own', cost: 1,
        returns: v.any(), handle: async () => { for (const one of opened) await one.close(); return opened.map((one) => one.connections) } }))
      ctx.routes.add(defineRoute({ method: 'POST', path: '/api/${name}/fetch', summary: 'A test', auth: 'public', effect: 'own', cost: 1,
        body: v.any(), returns: v.any(), handle: async ({ body }: any) => await tried(async () => {
          await ctx.connect({ host: '127.0.0.1', port: body.port }); return 'connected' }) }))
      return {}`,
  })
const keys = `config: v.object({
    listen: v.optional(fileOnly('opens a port', v.string()), '127.0.0.1:0'),
    busy: v.optional(fileOnly('opens a port', v.string()), ''),
    plain: v.optional(v.string(), '127.0.0.1:0'),
    loose: v.optional(settable('nobody wins anything', v.string()), '127.0.0.1:0'),
  }),`

async function start(members: string, config: object = {}, isolated: readonly string[] = []): Promise<TestHost> {
  const folder = await temporaryFolder()
  const home = await temporaryFolder()
  const name = 'opener'
  await writePlugin(join(home.path, 'plugins', name), port(name, members))
  const host = await startHost({
    plugins: [],
    home: home.path,
    memory: true,
    config: { plugins: { isolated: [...isolated], opener: config } },
  })
  onTestFinished(async () => {
    await host[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })
  return host
}
const listen = async (host: TestHost, key: string, more: object = {}) =>
  (await host.json('POST', '/api/opener/listen', { key, maxConnections: 2, ...more })).body

async function dial(to: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: to })
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}
const firstLine = async (socket: Socket): Promise<string> => String((await once(socket, 'data'))[0])

it('opens the port that the file names, for so many connections, and closes both with the plugin', async () => {
  const host = await start(keys)
  const first = await listen(host, 'listen', { maxPerAddress: 2 })
  expect(first).toEqual({ host: '127.0.0.1', port: expect.any(Number) })
  const [one, two] = [await dial(first.port), await dial(first.port)]
  expect(await Promise.all([firstLine(one), firstLine(two)])).toEqual(Array(2).fill('hello from 127.0.0.1\n'))
  one.write('back')
  expect(await firstLine(one)).toBe('back')
  await once(await dial(first.port), 'close')
  // Room again.
  one.destroy()
  two.destroy()
  const again = await listen(host, 'listen', { maxPerAddress: 1 })
  const kept = await dial(again.port)
  await firstLine(kept)
  await once(await dial(again.port), 'close')
  const ended = once(kept, 'close')
  await host.app.host.unload('opener')
  await ended
  await expect(dial(again.port)).rejects.toThrow('ECONNREFUSED')
  await expect(dial(first.port)).rejects.toThrow('ECONNREFUSED')
})

it('closes it when it is told to, and lets nothing that goes out come back in', async () => {
  const host = await start(`outbound: 'operator', ${keys}`)
  const { port: own } = await listen(host, 'listen')
  expect((await host.json('POST', '/api/opener/fetch', { port: own })).body).toContain(
    'the daemon itself listens there',
  )
  expect((await host.json('POST', '/api/opener/close')).body).toEqual([0])
  expect((await host.json('POST', '/api/opener/fetch', { port: own })).body).toContain('refused the connection')
})

it('refuses a key that others than the file set, an unknown one, what is no address, and a port in use', async () => {
  const host = await start(keys, { busy: 'nonsense' })
  const { port: used } = await listen(host, 'plain')
  expect(await listen(host, 'loose')).toMatch(/forbidden: .*plugins\.opener\.loose can be set over the API/)
  expect(await listen(host, 'absent')).toMatch(/declares no key "plugins\.opener\.absent"/)
  expect(await listen(host, 'busy')).toMatch(/plugins\.opener\.busy: expected an address .* not "nonsense"/)
  const second = await start(keys, { busy: `127.0.0.1:${used}` })
  expect(await listen(second, 'busy')).toMatch(/conflict: .*another program listens there/)
})

it('is refused to a plugin that does not declare it, and does not cross to another process', async () => {
  const declared = await start(`uses: { routes: ['/api/opener/*'] }, ${keys}`)
  expect(await listen(declared, 'listen')).toMatch(/may not use "listeners".*Add uses: \{ listeners: true \}/)
  const permitted = await start(`uses: { routes: ['/api/opener/*'], listeners: true }, ${keys}`)
  expect(await listen(permitted, 'listen')).toMatchObject({ host: '127.0.0.1' })
  const isolated = await start(`uses: { routes: ['/api/opener/*'], listeners: true }, ${keys}`, {}, ['opener'])
  expect(await listen(isolated, 'listen')).toMatch(/ctx\.listen is not available with isolation = "worker"/)
})
