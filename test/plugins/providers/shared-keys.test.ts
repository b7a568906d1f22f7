import { expect, it } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { openVault } from '../../../core/storage/vault-file.ts'
import { Keys } from '../../../plugins/providers/keys.ts'
import { migrations } from '../../../plugins/providers/migrations.ts'
import { KeyVersionStore } from '../../../plugins/providers/stored-keys/store.ts'
import { closing, emptyPostgres, recorder } from '../../core/storage/engines.ts'
import { SHARED_VAULT_KEY } from '../../support/host.ts'

it('keys that two daemons add at the same moment are all there', async () => {
  const url = await emptyPostgres()
  const open = async (): Promise<Keys> => {
    const database = closing(await openDatabase({ url, log: recorder().log }))
    await database.migrate('providers', migrations)
    const vault = await openVault(database, { file: '/nowhere', given: SHARED_VAULT_KEY })
    const keys = new Keys({
      vault: vault.forPlugin('providers'),
      versions: async () => new KeyVersionStore(database.sql),
      environment: () => undefined,
      sections: {},
      // Told to nobody: what one has in memory is older than what the other wrote.
      tellChanged: () => [],
    })
    await keys.read()
    return keys
  }
  const both = [await open(), await open()]
  const added = Array.from({ length: 12 }, (_, at) => `key-${at}`)
  await Promise.all(added.map((key, at) => both[at % 2]?.store('openai', key, undefined, { add: true })))
  const found = (await both[0]?.find('openai', [])) ?? []
  expect(found.map(({ value }) => value).toSorted()).toEqual(added.toSorted())
  await both[1]?.store('openai', 'only', undefined)
  await both[0]?.store('openai', 'second', undefined, { add: true })
  expect((await both[0]?.find('openai', []))?.map(({ value }) => value)).toEqual(['only', 'second'])
})
