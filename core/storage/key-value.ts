/** What a value may be: it is stored as JSON. */
export type StoredValue = null | string | number | boolean | object

/**
 * Key-value storage under a prefix of the plugin's own. A key has parts joined by `:` (`cache:pages`). For a few small
 * values; what is searched, counted or changed by several at once belongs into a table of `ctx.db`.
 */
export interface KeyValueStorage {
  /** The value, or `null` when there is none. It is not checked: parse what an older version may have written. */
  getItem(key: string): Promise<StoredValue>
  /** Durable before it settles. Replaces what was there. */
  setItem(key: string, value: StoredValue): Promise<void>
  /** Whether there is a value under the key. */
  hasItem(key: string): Promise<boolean>
  /** Removes the value; does nothing when there is none. */
  removeItem(key: string): Promise<void>
  /** The keys that begin with `base`; all when it is absent. */
  getKeys(base?: string): Promise<string[]>
  /** Removes the keys that begin with `base`; all when it is absent. */
  clear(base?: string): Promise<void>
}
