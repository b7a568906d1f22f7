import type { Vault } from 'svc/sdk'
import type { Definition } from './definition.ts'
import { secretSettings } from './settings.ts'
import type { Secrets } from './settings.ts'

const recordOf = (instanceId: string, key: string): string => `instance:${instanceId}:${key}`

/** Settings of instances that are secrets. They are in the vault, and only programs of the agent's tools get them. */
export class InstanceSecrets {
  readonly #vault: Vault
  constructor(vault: Vault) {
    this.#vault = vault
  }

  /** Keys of the settings that have a value. */
  async stored(instanceId: string, definition: Definition): Promise<ReadonlySet<string>> {
    const settings = secretSettings(definition)
    if (settings.length === 0) return new Set()
    const names = new Set(await this.#vault.names())
    return new Set(settings.map(({ key }) => key).filter((key) => names.has(recordOf(instanceId, key))))
  }
  /** By name of the variable. */
  async variables(instanceId: string, definition: Definition): Promise<Readonly<Record<string, string>>> {
    const found: Record<string, string> = {}
    for (const { key, env_var: variable } of secretSettings(definition)) {
      const value = await this.#vault.read(recordOf(instanceId, key))
      if (value !== undefined && value !== '') found[variable] = value
    }
    return found
  }
  /** An empty one is removed. */
  async write(instanceId: string, secrets: Secrets): Promise<void> {
    for (const [key, value] of Object.entries(secrets)) {
      const record = recordOf(instanceId, key)
      if (value === '') await this.#vault.remove(record)
      else await this.#vault.write(record, value)
    }
  }
  async clear(instanceId: string): Promise<void> {
    for (const name of await this.#vault.names())
      if (name.startsWith(recordOf(instanceId, ''))) await this.#vault.remove(name)
  }
}
