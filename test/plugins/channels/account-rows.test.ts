import * as v from 'valibot'
import { expect, it } from 'vitest'
import { secret } from 'svc/sdk'
import { Accounts } from '../../../plugins/channels/accounts/service.ts'
import type { AccountsDeps } from '../../../plugins/channels/accounts/service.ts'
import { AccountStore } from '../../../plugins/channels/accounts/store.ts'
import { recorder } from '../../core/storage/engines.ts'
import { openTables } from './inbox-stage.ts'

it('an account whose row cannot be read stays off, and the others are used', async () => {
  const db = await openTables()
  const { log, lines } = recorder()
  const store = new AccountStore(db, log)
  const row = { channel: 'irc', enabled: true, settings: {}, config: {}, secrets: [], has_token: true }
  await db.batch([
    store.save({ ...row, account_id: 'bad' }, 'now'),
    store.save({ ...row, account_id: 'good' }, 'now'),
    store.save({ ...row, account_id: 'of-file', settings: null, config: null }, 'now'),
  ])
  await db.run`UPDATE channels_account SET config = '{' WHERE account_id = 'bad'`
  await db.run`UPDATE channels_account SET secrets = '{' WHERE account_id = 'of-file'`
  const registry = { loaded: () => undefined }
  const accounts = new Accounts({ store, registry, section: {} } as unknown as AccountsDeps)
  expect(await accounts.list()).toMatchObject([{ id: 'good', enabled: true }])
  accounts.replaceFile({ irc: [{ account_id: 'of-file', server: 'irc.example.com' }] })
  expect(await accounts.list()).toMatchObject([
    { id: 'of-file', source: 'file', enabled: false },
    { id: 'good', enabled: true },
  ])
  expect(lines.map((line) => /row of \w+ with [^;]+ is/.exec(line)?.[0])).toEqual([
    'row of channels_account with channel "irc", account_id "bad" is',
    'row of channels_account with channel "irc", account_id "of-file" is',
  ])
})

it('what was entered for an account goes nowhere else when its row is changed', async () => {
  const db = await openTables()
  const { log } = recorder()
  const store = new AccountStore(db, log)
  const records = new Map<string, string>()
  const adapter = { config: v.object({ server: v.optional(v.string()), token: secret(v.string()) }) }
  const commit = (statements: Parameters<typeof db.batch>[0]) => db.batch(statements)
  const vault = {
    read: async (name: string) => records.get(name),
    async write(name: string, text: string, statements: Parameters<typeof db.batch>[0] = []) {
      records.set(name, text)
      if (statements.length > 0) await commit(statements)
    },
  }
  const accounts = new Accounts({
    section: {},
    store,
    vault,
    registry: { load: async () => adapter, loaded: () => adapter },
    audit: { entry: () => db.sql`SELECT 1` },
    tellChanged: () => [],
    commit,
    admit: async () => undefined,
    maxAccounts: 10,
    now: () => 'now',
  } as unknown as AccountsDeps)
  const configure = (fields: object) =>
    accounts.configure({ channel: 'irc', id: 'one', enabled: undefined, fields: fields as never })
  const resolved = async () => {
    const entry = await accounts.find('irc', 'one')
    return entry && (await accounts.resolve(entry)).config
  }
  await configure({ server: 'a.test', token: 'secret' })
  expect(await resolved()).toEqual({ server: 'a.test', token: 'secret' })

  // One of the version before belongs to what its row says then.
  records.set('account/irc/one', JSON.stringify({ token: 'secret' }))
  expect(await resolved()).toEqual({ server: 'a.test', token: 'secret' })
  await db.run`UPDATE channels_account SET config = '{"server":"b.test"}'`
  await expect(resolved()).rejects.toThrow('another configuration than its secrets were entered for')
  expect(await accounts.find('irc', 'one')).toMatchObject({ problem: expect.stringContaining('in the database') })
  await expect(configure({ enabled: true, token: '***' })).rejects.toThrow()
  await expect(configure({ agent_name: 'ada' })).rejects.toThrow('token')

  await configure({ server: 'b.test', token: 'new' })
  expect(await resolved()).toEqual({ server: 'b.test', token: 'new' })
  expect((await accounts.find('irc', 'one'))?.problem).toBeUndefined()
})
