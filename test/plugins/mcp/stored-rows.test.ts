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
  expect(await store.servers()).toEqual([spec('good')])
  expect(await Promise.all(['bad', 'odd', 'none'].map((name) => store.has(name)))).toEqual([true, true, false])
  expect(lines.filter((line) => line.includes('the row of mcp_server with name'))).toHaveLength(2)
})
