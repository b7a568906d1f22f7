import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

/** Every model of every provider that comes with svc. */
let host: TestHost
let rows: { id: string; provider: string; [field: string]: unknown }[]
beforeAll(async () => {
  host = await startHost({
    memory: true,
    listen: false,
    config: { providers: { work: { driver: 'groq', api_key: 'k' } } },
  })
  const custom = [
    { id: 'acme/one', provider: 'openrouter' },
    { id: 'one', provider: 'acme' },
    { id: 'gpt-5-mini', provider: 'acme' },
    { id: 'sonnet', provider: 'acme' },
  ]
  for (const body of custom) expect((await host.json('POST', '/api/models/custom', body)).status).toBe(201)
  rows = (await host.json('GET', '/api/models')).body.models
})
afterAll(() => host[Symbol.asyncDispose]())

const read = (id: string, provider?: string) =>
  host.json(
    'GET',
    `/api/models/${id.split('/').map(encodeURIComponent).join('/')}${provider === undefined ? '' : `?provider=${provider}`}`,
  )

it('every id of the list is found, and where several providers have it, by the provider', async () => {
  expect(rows.length).toBeGreaterThan(1000)
  const faults: string[] = []
  const aliases = new Set(Object.keys((await host.json('GET', '/api/models/aliases')).body.aliases))
  for (const row of rows) {
    const [plain, exact] = [await read(row.id), await read(row.id, row.provider)]
    if (plain.status !== 200 || (plain.body.id !== row.id && !aliases.has(row.id)))
      faults.push(`${row.id}: ${plain.status} ${plain.body.id}`)
    else if (!plain.body.providers.includes(row.provider)) faults.push(`${row.id}: does not name ${row.provider}`)
    const { aliases: _, long_context: __, origin: ___, providers: ____, request_cost: _____, ...shown } = exact.body
    if (exact.status !== 200 || JSON.stringify(shown) !== JSON.stringify(row))
      faults.push(`${row.id} of ${row.provider}: ${exact.status} ${JSON.stringify(shown)}`)
  }
  expect(faults.slice(0, 10)).toEqual([])
})

it('every figure that the interface names is a number, and every model is of a provider there is', async () => {
  const { providers } = (await host.json('GET', '/api/providers')).body
  const names = new Set(providers.map(({ name }: { name: string }) => name))
  for (const provider of providers) expect([provider.name, typeof provider.base_url]).toEqual([provider.name, 'string'])
  const numbers = ['context_window', 'input_cost_per_1m', 'output_cost_per_1m']
  const wrong = rows.filter((row) => numbers.some((name) => !Number.isFinite(row[name])))
  expect(wrong).toEqual([])
  expect(rows.filter((row) => row['pricing_known'] === false && row['input_cost_per_1m'] !== 0)).toEqual([])
  expect([...new Set(rows.map(({ provider }) => provider))].filter((name) => !names.has(name))).toEqual(['acme'])
})

it('a provider that has no such model is told who has it', async () => {
  expect(await read('gpt-5-mini', 'groq')).toMatchObject({
    status: 404,
    body: { error: { message: expect.stringMatching(/^Provider 'groq' has no model 'gpt-5-mini'; openai, .*acme/) } },
  })
  expect((await read('nobody-knows', 'groq')).body.error.message).toBe("Model 'nobody-knows' not found")
})

it('a custom model is removed by its provider where its name is that of another one too', async () => {
  const remove = (query = '') => host.json('DELETE', `/api/models/custom/acme/one${query}`)
  expect(await remove()).toMatchObject({
    status: 409,
    body: { error: { message: expect.stringContaining('?provider= and one of acme, openrouter') } },
  })
  expect((await remove('?provider=openrouter')).body).toEqual({ status: 'removed' })
  expect((await read('acme/one')).body).toMatchObject({ provider: 'acme', id: 'one' })
  expect((await remove()).status).toBe(200)
  expect((await read('acme/one')).status).toBe(404)
})
