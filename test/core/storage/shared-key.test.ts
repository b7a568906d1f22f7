import { chmod, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { checkSharedKey, openVault, VaultKeyRefused } from '../../../core/storage/vault-file.ts'
import { sealKey, unsealKey } from '../../../core/storage/vault-key.ts'
import { vaultKeySource } from '../../../core/storage/vault-key-source.ts'
import { explainStart } from '../../../core/cli/start-failure.ts'
import type { Config } from '../../../core/config/schema.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { closing, folder, recorder } from './engines.ts'

const KEY = 'a1'.repeat(32)
const OTHER = 'b2'.repeat(32)

async function start() {
  const [server, home] = [await createTestDatabase(), await folder()]
  const { log } = recorder()
  const open = async () => closing(await openDatabase({ url: server.url, log }))
  return { home, open, database: await open() }
}

it('daemons on a server have one key, however it is given', async () => {
  const { home, open, database } = await start()
  await checkSharedKey(database, { file: join(home, 'vault.key') })
  const { keyFile } = await unsealKey(await sealKey({ file: join(home, 'vault.key') }, 'p'), 'p', 'test')
  const second = await open()
  const given = vaultKeySource({ home_dir: '/nowhere', vault_key: keyFile })
  await checkSharedKey(second, given)
  await (await openVault(database, { file: join(home, 'vault.key') })).forPlugin('mail').write('password', 'secret')
  expect(await (await openVault(second, given)).forPlugin('mail').read('password')).toBe('secret')
})

it('a daemon with another key, or none, is refused with what to do', async () => {
  const { home, database } = await start()
  await checkSharedKey(database, { file: 'unused', given: KEY })
  await expect(checkSharedKey(database, { file: 'unused', given: OTHER })).rejects.toThrow(
    'the secrets on this database were encrypted with another key than the key that was given (SVC_VAULT_KEY, vault_key or standard input)',
  )
  const none = checkSharedKey(database, { file: join(home, 'vault.key') })
  await expect(none).rejects.toThrow(`the key file ${home}/vault.key does not exist`)
  const explained = await none.catch((error: unknown) => explainStart(error, {} as Config))
  expect(explained).toMatchObject({ exit: 6, advice: expect.stringContaining('SVC_VAULT_KEY') })
})

it('of two daemons that start at once with keys of their own, one is refused', async () => {
  const { open, database } = await start()
  const outcomes = await Promise.allSettled([
    checkSharedKey(database, { file: 'unused', given: KEY }),
    checkSharedKey(await open(), { file: 'unused', given: OTHER }),
  ])
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

it('secrets from before the check are tried with the key', async () => {
  const { database } = await start()
  await (await openVault(database, { file: 'unused', given: KEY })).forPlugin('mail').write('password', 'secret')
  await expect(checkSharedKey(database, { file: 'unused', given: OTHER })).rejects.toThrow(VaultKeyRefused)
  await checkSharedKey(database, { file: 'unused', given: KEY })
})

it('a key file that the operator names may be a link that others can read, and must exist', async () => {
  const { home, database } = await start()
  await writeFile(join(home, 'secret'), `${KEY}\n`)
  await chmod(join(home, 'secret'), 0o444)
  await symlink('secret', join(home, 'mounted'))
  await checkSharedKey(database, vaultKeySource({ home_dir: home, vault_key_file: 'mounted' }))
  await expect(checkSharedKey(database, vaultKeySource({ home_dir: home, vault_key_file: 'gone' }))).rejects.toThrow(
    `vault_key_file: ${home}/gone cannot be read (ENOENT)`,
  )
  await expect(checkSharedKey(database, { file: '', given: 'no hex' })).rejects.toThrow('64 hex digits')
})
