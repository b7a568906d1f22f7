import { defineService } from 'svc/sdk'

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
