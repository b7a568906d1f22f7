import { Refusal } from 'svc/sdk'
import type { Statement, Vault } from 'svc/sdk'
import { MAX_KEYS } from './keys.ts'
import type { HeldKeys } from './keys.ts'
import type { KeyVersionStore } from './stored-keys/store.ts'

/** How often a key is added again when other daemons change the keys of the provider meanwhile. */
const MAX_TRIES = 10

export interface KeyChange {
  readonly provider: string
  readonly given: readonly string[]
  readonly address: string | undefined
  /** For the same batch. */
  readonly entries: readonly Statement[]
}
export interface KeyChangeDeps {
  readonly vault: Vault
  readonly versions: Pick<KeyVersionStore, 'find' | 'advance' | 'advanceFrom'>
  /** Reads those that are there, which the given ones join; absent: they are replaced. */
  readonly held: (() => Promise<HeldKeys | undefined>) | undefined
}

/** Stores keys in the vault. Of those that are there another daemon may change some at the same moment. */
export async function storeKeys({ vault, versions, held }: KeyChangeDeps, change: KeyChange): Promise<void> {
  const { provider, given, address } = change
  if (!held) return write(vault, change, given, versions.advance(provider))
  for (let attempt = 1; ; attempt++) {
    const version = await versions.find(provider)
    const before = await held()
    const keys = before?.address === address ? [...(before?.keys ?? []), ...given] : given
    try {
      return await write(vault, change, keys, versions.advanceFrom(provider, version))
    } catch (error) {
      if (attempt === MAX_TRIES || (await versions.find(provider)) === version) throw error
    }
  }
}
async function write(
  vault: Vault,
  { provider, address, entries }: KeyChange,
  keys: readonly string[],
  version: Statement,
): Promise<void> {
  const all = [...new Set(keys)]
  if (all.length > MAX_KEYS)
    throw new Refusal('invalid_request', `Provider ${provider} cannot have more than ${MAX_KEYS} keys`)
  await vault.write(provider, JSON.stringify({ keys: all, address }), [version, ...entries])
}
