import { defineService, notify } from 'svc/sdk'

/** Each agent's own keys, any JSON (Interface 2.6). */
export interface KeyValue {
  find(agentId: string, key: string): Promise<{ readonly value: unknown } | undefined>
  list(agentId: string): Promise<readonly { readonly key: string; readonly value: unknown }[]>
  /** Durable before it settles. */
  put(agentId: string, key: string, value: unknown): Promise<void>
  /** Whether there was one. */
  remove(agentId: string, key: string): Promise<boolean>
}
export const KeyValue = defineService<KeyValue>()('kv')

/** Keys of an agent were written or removed; all of them when `key` is absent. It is on disk. */
export const KeyValueChanged = notify<{ readonly agentId: string; readonly key?: string | undefined }>('kv:changed')
