import { expect, it } from 'vitest'
import { readFileAccounts } from '../../../plugins/channels/accounts/file-accounts.ts'
import { Accounts } from '../../../plugins/channels/accounts/service.ts'
import type { AccountsDeps } from '../../../plugins/channels/accounts/service.ts'
import type { AccountRow } from '../../../plugins/channels/accounts/store.ts'

const row = (id: string, settings: Record<string, unknown>): AccountRow => ({
  channel: 'irc',
  account_id: id,
  enabled: true,
  settings,
  config: {},
  secrets: [],
  has_token: true,
})

it('an account whose stored settings are not accepted any more is a problem of its own', async () => {
  const rows = [row('old', { dm_policy: 'gone' }), row('good', { agent_name: 'ada' })]
  const accounts = new Accounts({ section: {}, store: { list: async () => rows } } as unknown as AccountsDeps)
  expect(await accounts.list()).toMatchObject([
    { id: 'old', problem: expect.stringContaining('dm_policy') as string },
    { id: 'good', problem: undefined, settings: { agent_name: 'ada' } },
  ])
})

it('a variable that is not set is no value, and is kept for what is said of the account', () => {
  const [account] = readFileAccounts({ irc: { token_env: 'SVC_TEST_NOT_SET', nick: 'svc' } })
  expect(account).toMatchObject({ config: { nick: 'svc' }, unsetVariables: { token: 'SVC_TEST_NOT_SET' } })
  const [given] = readFileAccounts({ irc: { token_env: 'SVC_TEST_NOT_SET', token: 'x' } })
  expect(given).toMatchObject({ config: { token: 'x' }, unsetVariables: {} })
})

it('a wrong section of the file is a problem of its own, and two of one name are told', () => {
  const accounts = readFileAccounts({
    stoat: { token: 'x', rate_limit_per_user: -1 },
    irc: [{ server: 'a' }, { server: 'b' }, { account_id: 'Third', enabled: 'yes' }],
  })
  expect(accounts).toMatchObject([
    { channel: 'revolt', id: 'default', problem: expect.stringContaining('rate_limit_per_user') as string },
    { channel: 'irc', id: 'default', problem: undefined, config: { server: 'a' } },
    { channel: 'irc', enabled: false, problem: expect.stringContaining('account_id = "default"') as string },
    { channel: 'irc', enabled: false, problem: expect.stringContaining('two sections') as string },
  ])
})
