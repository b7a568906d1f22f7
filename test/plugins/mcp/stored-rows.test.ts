import { expect, it } from 'vitest'
import { migrations } from '../../../plugins/mcp/migrations.ts'
import { McpStore } from '../../../plugins/mcp/servers/store.ts'
import { open, recorder } from '../../core/storage/engines.ts'

it('a server whose row cannot be read is left out, and its name stays taken', async () => {
  const { database } = await open('sqlite')
  await database.migrate('mcp', migrations)
  const { log, lines } = recorder()
  const store = new McpStore(database.sql, () => [], log)
  const spec = (name: string) => ({
    name,
    origin: 'api',
    revision: '1',
    spec: { name, transport: 'stdio', command: 'perl' },
  })
  await store.commit(['bad', 'good', 'odd'].flatMap((name) => store.insert(spec(name), 'now')))
  await database.sql.run`UPDATE mcp_server SET spec = '{' WHERE name = 'bad'`
  await database.sql.run`UPDATE mcp_server SET spec = 'null' WHERE name = 'odd'`
  expect(await store.servers()).toEqual([{ ...spec('good'), spec: { transport: 'stdio', command: 'perl' } }])
  expect(await Promise.all(['bad', 'odd', 'none'].map((name) => store.has(name)))).toEqual([true, true, false])
  expect(lines.filter((line) => line.includes('the row of mcp_server with name'))).toHaveLength(2)
})

it('a row says no more than the API can: what only the file can say is ignored and named, once', async () => {
  const { database } = await open('sqlite')
  await database.migrate('mcp', migrations)
  const { log, lines } = recorder()
  const store = new McpStore(database.sql, () => [], log)
  const own = { transport: 'stdio', command: '/bin/sh', args: ['-c', 'id'], credentials: ['TOKEN'] }
  const wide = {
    trust: 'operator',
    read: ['/'],
    write: ['/'],
    path: ['/tmp'],
    risk: 'read',
    tool_risk: { run: 'read' },
    trust_annotations: true,
    sampling: true,
  }
  const row = (name: string, more: object, origin = 'api') => ({
    name,
    origin,
    revision: name,
    spec: { ...own, ...more },
  })
  const rows = [
    row('wide', { ...wide, name: '../..' }),
    row('plain', { trust: 'confined', read: [], tool_risk: {}, sampling: false }),
    row('../..', {}),
    row('of-file', { env: ['SVC_API_KEY'] }, 'file'),
    row('unfit', { url: 'https://example.org' }),
  ]
  await store.commit(rows.flatMap((each) => store.insert(each, 'now')))
  for (let round = 0; round < 2; round++)
    expect(await store.servers()).toEqual([
      { name: 'plain', origin: 'api', revision: 'plain', spec: own },
      { name: 'wide', origin: 'api', revision: 'wide', spec: own },
    ])
  expect(lines.filter((line) => line.includes('the MCP server'))).toEqual([
    expect.stringContaining(
      '"wide" sets path, read, risk, sampling, tool_risk, trust, trust_annotations, write, which',
    ),
  ])
  expect(lines.filter((line) => line.includes('the row of mcp_server with name'))).toHaveLength(3)
})

it('an attempt whose name is no name of a server is left out: its folder would be removed', async () => {
  const { database } = await open('sqlite')
  await database.migrate('mcp', migrations)
  const { log, lines } = recorder()
  const store = new McpStore(database.sql, () => [], log)
  const attempt = (name: string) => ({ name, url: null, new_folder: 1, owner: 'nobody' })
  await store.commit(['notes', '../../elsewhere', '..'].map((name) => store.beginAttempt(attempt(name))))
  expect(await store.attempts()).toEqual([attempt('notes')])
  expect(lines.filter((line) => line.includes('the row of mcp_server_attempt'))).toHaveLength(2)
})
