import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

let test: PluginTest
const sent: { readonly path: string | undefined; readonly key: unknown }[] = []
let respond: (response: ServerResponse) => void
const server = createServer((request, response) => {
  sent.push({ path: request.url, key: request.headers['idempotency-key'] })
  respond(response)
})
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test = await startPlugin({
    // Its reload takes the built-in plugins away that need it.
    plugin: new URL('../../../plugins/queue/', import.meta.url),
    builtIns: [...turnPlugins, 'approvals', 'events', 'workflows'],
    database: 'file',
    fetch: 'network',
    config: { outbound: { allow: ['127.0.0.1'] }, plugins: { drain_ms: 100 } },
  })
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
})

/** A run of two requests; the first one is on its way. */
async function begin(): Promise<string> {
  sent.length = 0
  const { port } = server.address() as AddressInfo
  const act = (name: string) => ({
    name,
    type: 'http',
    with: { url: `http://127.0.0.1:${port}/${name}`, method: 'PUT' },
  })
  const steps = [act('a'), act('b')]
  const { body } = await test.request<Json>('POST', '/api/workflows', { name: 'put', steps })
  const run = await test.request<Json>('POST', `/api/workflows/${body.workflow_id}/run?wait=false`, { input: 'x' })
  await eventually(() => expect(sent).toHaveLength(1))
  return run.body.run_id
}
const completed = (id: string): Promise<void> =>
  eventually(async () => {
    const { body } = await test.request<Json>('GET', `/api/workflows/runs/${id}`)
    expect(body).toMatchObject({ state: 'Completed', error: null })
  })

it('a request that the reload cuts off is made again with its key, and is no failure of the step', async () => {
  respond = () => {}
  const id = await begin()
  const reloaded = test.reload()
  respond = (response) => void response.end()
  await reloaded
  await completed(id)
  expect(sent.map(({ path }) => path)).toEqual(['/a', '/a', '/b'])
  expect(sent[0]?.key).toBe(sent[1]?.key)
})
