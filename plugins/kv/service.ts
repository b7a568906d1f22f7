import { readOwnJson } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditRecord } from '../audit/contract.ts'
import type { KeyValue } from './contract.ts'
import type { Limits, PairRow } from './schema.ts'
import type { PairStore } from './pairs/store.ts'

/** Loads it with the first use. */
export type OpenPairs = () => Promise<PairService>

/** Each agent's own keys. An agent's id is checked by every call: there are no keys without an agent. */
export class PairService implements KeyValue {
  readonly #store: PairStore
  readonly #agents: Agents
  readonly #audit: Audit
  readonly #limits: Limits
  readonly #onChanged: (agentId: string, key?: string) => Promise<void>

  constructor(
    store: PairStore,
    agents: Agents,
    audit: Audit,
    limits: Limits,
    onChanged: (agentId: string, key?: string) => Promise<void>,
  ) {
    this.#store = store
    this.#agents = agents
    this.#audit = audit
    this.#limits = limits
    this.#onChanged = onChanged
  }

  async find(agentId: string, key: string): Promise<{ readonly value: unknown } | undefined> {
    const text = await this.read(agentId, key)
    return text === undefined ? undefined : { value: readOwnJson(text) }
  }
  async list(agentId: string): Promise<readonly { readonly key: string; readonly value: unknown }[]> {
    return (await this.rows(agentId)).map(({ key, value }) => ({ key, value: readOwnJson(value) }))
  }
  async put(agentId: string, key: string, value: unknown): Promise<void> {
    await this.write(agentId, key, encode(value))
  }

  /** The JSON text under a key. */
  async read(agentId: string, key: string): Promise<string | undefined> {
    const { id } = await this.#agents.require(agentId)
    return (await this.#store.find(id, key))?.value
  }
  async rows(agentId: string): Promise<readonly PairRow[]> {
    const { id } = await this.#agents.require(agentId)
    return this.#store.list(id)
  }
  async names(agentId: string): Promise<readonly string[]> {
    const { id } = await this.#agents.require(agentId)
    return this.#store.names(id)
  }

  /** `text` must be JSON. */
  async write(agentId: string, key: string, text: string): Promise<void> {
    const { id } = await this.#agents.require(agentId)
    this.#checkKey(key)
    const bytes = this.#checkValue(text)
    const { max_keys_per_agent: maxKeys } = this.#limits
    try {
      await this.#store.commit(
        this.#store.put(id, key, text, new Date().toISOString(), maxKeys),
        // The value is the agent's memory and may be private: the trail names the key, not the value.
        this.#audit.entry(access(id, `set key "${key}" (${bytes} bytes)`)),
      )
    } catch (error) {
      if (!(await this.#store.full(id, key, maxKeys))) throw error
      throw new Refusal(
        'invalid_request',
        `key: the agent has ${maxKeys} keys, which is the limit (plugins.kv.max_keys_per_agent): delete some`,
        { details: { limit_keys: maxKeys }, cause: error },
      )
    }
    // Killed during the write: nothing would remove the key later.
    if (!(await this.#agents.find(id))) {
      await this.clear(id)
      throw new Refusal('agent_not_found', `No agent ${id}`)
    }
    await this.#onChanged(id, key)
  }

  async remove(agentId: string, key: string): Promise<boolean> {
    const { id } = await this.#agents.require(agentId)
    const [removed] = await this.#store.commit(
      this.#store.remove(id, key),
      this.#audit.entry(access(id, `delete key "${key}"`)),
    )
    const isRemoved = (removed?.changes ?? 0) > 0
    if (isRemoved) await this.#onChanged(id, key)
    return isRemoved
  }

  /**
   * Writes many keys at once: all valid ones, or none on a failure. Returns which ones are invalid and why. `texts`
   * must be JSON. Throws `invalid_request` when there would be too many.
   */
  async import(
    agentId: string,
    texts: ReadonlyMap<string, string>,
    clear: boolean,
  ): Promise<{
    readonly imported: number
    readonly failed: readonly { readonly key: string; readonly error: string }[]
  }> {
    const { id } = await this.#agents.require(agentId)
    const failed: { key: string; error: string }[] = []
    const good: [string, string][] = []
    for (const [key, text] of texts) {
      try {
        this.#checkKey(key)
        this.#checkValue(text)
        good.push([key, text])
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        failed.push({ key: key.slice(0, 256).toWellFormed(), error: error.message })
      }
    }
    const { max_keys_per_agent: maxKeys } = this.#limits
    const names = new Set([...(clear ? [] : await this.#store.names(id)), ...good.map(([key]) => key)])
    if (names.size > maxKeys)
      throw new Refusal(
        'invalid_request',
        `kv: the agent would have ${names.size} keys, and ${maxKeys} is the limit (plugins.kv.max_keys_per_agent)`,
        { details: { limit_keys: maxKeys } },
      )
    const at = new Date().toISOString()
    await this.#store.commit(
      ...(clear ? [this.#store.removeAll(id)] : []),
      ...good.map(([key, text]) => this.#store.replace(id, key, text, at)),
      this.#audit.entry(access(id, `import of ${good.length} keys${clear ? ', all others deleted' : ''}`)),
    )
    if (!(await this.#agents.find(id))) {
      await this.clear(id)
      throw new Refusal('agent_not_found', `No agent ${id}`)
    }
    await this.#onChanged(id)
    return { imported: good.length, failed }
  }

  clear(agentId: string): Promise<void> {
    return this.#store.clear(agentId)
  }

  /** Removes keys whose agent was killed just before the process ended. */
  async sweep(): Promise<void> {
    for (const agentId of await this.#store.agents()) {
      if (!(await this.#agents.find(agentId))) await this.clear(agentId)
    }
  }

  /** The size in bytes. */
  #checkValue(text: string): number {
    const bytes = Buffer.byteLength(text)
    const { max_value_bytes: maxBytes } = this.#limits
    if (bytes > maxBytes) {
      throw new Refusal(
        'payload_too_large',
        `value: ${bytes} bytes of JSON, at most ${maxBytes} are kept under one key (plugins.kv.max_value_bytes)`,
        { details: { limit_bytes: maxBytes } },
      )
    }
    return bytes
  }

  #checkKey(key: string): void {
    const { max_key_chars: maxChars } = this.#limits
    if (key === '') throw new Refusal('invalid_request', 'key: must not be empty')
    if (key.length > maxChars)
      throw new Refusal(
        'invalid_request',
        `key: ${key.length} characters, at most ${maxChars} (plugins.kv.max_key_chars)`,
        { details: { limit_chars: maxChars } },
      )
    // Not every engine can keep them, and a key must be found again as it was written.
    if (key.includes('\0') || !key.isWellFormed())
      throw new Refusal('invalid_request', 'key: must be well-formed Unicode without NUL')
  }
}

function access(agentId: string, details: string): AuditRecord {
  return { event: 'memory_access', agentId, details }
}

/** JSON text of a value. A number beyond the range of a double would silently become `null`. */
function encode(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === 'number' && !Number.isFinite(part))
      throw new Refusal('invalid_request', 'value: a number is out of range')
    return part
  })
  if (text === undefined) throw new Refusal('invalid_request', 'value: Expected JSON')
  return text
}
