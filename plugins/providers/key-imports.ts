import type { Statement } from 'svc/sdk'
import type { Connections } from './connection.ts'
import type { Inference, ProviderKeys } from './contract.ts'
import { variablesOf } from './keys.ts'
import type { Keys } from './keys.ts'

export interface KeyImportDeps {
  readonly connections: Connections
  readonly inference: Inference
  readonly keys: Keys
  readonly change: (
    provider: string,
    details: string,
    work: (e: readonly Statement[]) => Promise<void>,
  ) => Promise<void>
}

/** What comes from elsewhere, for providers that have no key yet. */
export function createKeyImports({ connections, inference, keys, change }: KeyImportDeps): ProviderKeys {
  return {
    named: async (variable) =>
      inference.providers().find(({ name }) => {
        const driver = connections.driver(name)?.driver
        return driver !== undefined && variablesOf(driver).includes(variable)
      })?.name,
    async add(provider, key, { isCheck = false } = {}) {
      const state = inference.providers().find(({ name }) => name === provider)
      if (!state) return 'unknown'
      if (state.authStatus !== 'missing') return state.authStatus
      if (!isCheck)
        await change(provider, `key of provider ${provider} stored`, (entries) =>
          keys.store(provider, key, connections.baseUrl(provider), { entries }),
        )
      return 'added'
    },
  }
}
