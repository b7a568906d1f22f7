import { join } from 'node:path'
import { expect, it } from 'vitest'
import { AnchorFile } from '../../../plugins/audit/anchor.ts'
import { folder } from '../../core/storage/engines.ts'

const tip = { count: 7, hash: 'a'.repeat(64) }

/** A vault whose `write` has stored the secret and settles when it is released. */
function slowVault() {
  const secrets = new Map<string, string>()
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const stored = Promise.withResolvers<void>()
  return {
    release,
    stored: stored.promise,
    read: async (name: string) => secrets.get(name),
    async write(name: string, secret: string) {
      secrets.set(name, secret)
      stored.resolve()
      await promise
    },
  }
}

it('is not missing while it is written for the first time', async () => {
  const vault = slowVault()
  const anchor = new AnchorFile(join(await folder(), 'audit.anchor'), vault)
  const writing = anchor.write(tip)
  await vault.stored
  const reading = anchor.read()
  vault.release()
  await writing
  expect(await reading).toEqual({ kind: 'known', tip })
})

it('is known after a crash between its new key and its file', async () => {
  const file = join(await folder(), 'audit.anchor')
  const secrets = new Map<string, string>()
  const crashing = {
    read: async (name: string) => secrets.get(name),
    async write(name: string, secret: string) {
      secrets.set(name, secret)
      throw new Error('the process ends here')
    },
  }
  await expect(new AnchorFile(file, crashing).write(tip)).rejects.toThrow('ends here')
  const anchor = new AnchorFile(file, crashing)
  expect(await anchor.read()).toEqual({ kind: 'known', tip })
  const next = { count: 8, hash: 'b'.repeat(64) }
  await anchor.write(next)
  expect(await anchor.read()).toEqual({ kind: 'known', tip: next })
})

it('was never there after a crash before its new key', async () => {
  const file = join(await folder(), 'audit.anchor')
  const crashing = {
    read: async () => undefined,
    write: async () => {
      throw new Error('the process ends here')
    },
  }
  await expect(new AnchorFile(file, crashing).write(tip)).rejects.toThrow('ends here')
  expect(await new AnchorFile(file, crashing).read()).toEqual({ kind: 'unset' })
})
