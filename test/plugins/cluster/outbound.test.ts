import { expect, it } from 'vitest'
import { createOutbound } from '../../../core/net/outbound.ts'
import { serverAddress } from '../../../core/storage/server-address.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { openTools } from '../../support/tool-stage.ts'

it('an agent reaches no other daemon on the database, whatever is permitted', async () => {
  await using database = await createTestDatabase()
  const config = {
    database_url: database.url,
    outbound: { allow: ['127.0.0.1', 'localhost', '10.0.0.5', '10.0.0.6'] },
  }
  await using one = await openTools(['web'], { listen: true, config })
  await using two = await openTools(['web'], {
    listen: true,
    config: { ...config, plugins: { cluster: { address: '10.0.0.5:4200' } } },
  })
  await using three = await openTools(['web'], { listen: true, config })
  const agent = await one.spawn('fetcher', 'network = ["*"]')
  const get = async (url: string) => (await one.call(agent, 'web_fetch', { url })).text
  const sibling = 'another daemon on the same database listens there'
  // The others were told when it began to listen.
  await three.host.app.greeted()
  await eventually(async () => expect(await get(`${three.host.url}/api/health`)).toContain(sibling))
  await two.host.app.greeted()
  await eventually(async () => expect(await get(`${two.host.url}/api/health`)).toContain(sibling))
  for (const host of ['localhost', '127.1', '0.0.0.0', '[::ffff:127.0.0.1]'])
    expect(await get(`http://${host}:${new URL(three.host.url).port}/api/health`)).toContain(sibling)
  expect(await get('http://10.0.0.5:4200/api/health')).toContain(sibling)
  expect(await get(`${one.host.url}/api/health`)).toContain('the daemon itself listens there')
})

it.each([
  ['postgres://svc:secret@127.0.0.1:5433/svc', '127.0.0.1', 5433, ['127.0.0.1', 'localhost', '[::1]']],
  ['postgresql://localhost/svc', 'localhost', 5432, ['localhost', '127.0.0.1']],
  ['postgres:///svc?host=10.0.0.6&port=5434', '10.0.0.6', 5434, ['10.0.0.6', '[::ffff:10.0.0.6]']],
  ['postgres://svc@[fd00::6]/svc', 'fd00::6', 5432, ['[fd00::6]']],
  ['postgres://db.example.test/svc', 'db.example.test', 5432, ['db.example.test', 'DB.example.test.']],
] as const)('nothing reaches the database: %s', async (url, host, port, names) => {
  expect(serverAddress(url)).toEqual({ host, port })
  await using outbound = createOutbound({
    settings: () => ({
      allow: ['0.0.0.0/0', '::/0'],
      headersTimeoutMs: 10_000,
      idleTimeoutMs: 10_000,
      maxBytes: 1000,
      maxRedirects: 0,
    }),
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    own: {
      ports: () => new Set(),
      names: () => [],
      addresses: () => [{ host, port, what: 'the database of the daemon is there' }],
    },
  })
  for (const name of names) {
    for (const ask of [outbound.fetch, outbound.forOperator()])
      await expect(ask(`http://${name}:${port}/`)).rejects.toThrow('the database of the daemon is there')
    await expect(outbound.admit(`http://${name}:${port + 1}/`)).resolves.toBeUndefined()
  }
})

it.each(['sqlite:/home/svc/svc.db', 'postgres:///svc?host=%2Frun%2Fpostgresql', 'postgres:///svc'])(
  'a database without a port has no address to refuse: %s',
  (url) => {
    expect(serverAddress(url)).toBeUndefined()
  },
)
