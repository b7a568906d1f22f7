import type { Broadcast } from './broadcast.ts'
import type { Statement } from './database.ts'

/** For the batch that changes rows: tells the other daemons the key of what they may have in memory. */
export type TellChange = (key: string) => readonly Statement[]

/** What keeps rows in memory, and must not throw. A function is called for every change. */
export type RowsInMemory = RowsByKey | (() => void)
export interface RowsByKey {
  /** Another daemon changed what is kept under this key. */
  readonly changed: (key: string) => void
  /** Anything may have changed. */
  readonly missed: () => void
}

/**
 * Keeps what a plugin has in memory of rows up to date with the other daemons on the database: `topic` is
 * `<plugin>.<subject>`. `own`: that of the plugin's context, which ends it with the plugin. What is being read from the
 * database while a change is heard may be from before it.
 */
export function followChanges(
  { broadcast, own }: { readonly broadcast: Broadcast; own(label: string, dispose: () => void): void },
  topic: string,
  rows: RowsInMemory,
): TellChange {
  const { changed, missed } = typeof rows === 'function' ? { changed: rows, missed: rows } : rows
  const subscription = broadcast.on(topic, {
    heard: (key) => (typeof key === 'string' ? changed(key) : missed()),
    missed,
  })
  own(`changes of ${topic} by other daemons`, () => subscription[Symbol.dispose]())
  return (key) => broadcast.tell(topic, key)
}
