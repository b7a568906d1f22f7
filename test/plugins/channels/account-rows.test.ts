import { expect, it } from 'vitest'
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
