import { createHmac } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson } from '../schema/object.ts'
import { isTree } from './shape.ts'

/** What differs from machine to machine by its nature. */
const OF_A_MACHINE: ReadonlySet<string> = new Set([
  'home_dir',
  'data_dir',
  'database_url',
  'listen_addr',
  'vault_key',
  'vault_key_file',
  'log_level',
  'log_format',
  'http.tls_cert',
  'http.tls_key',
  'http.open',
  'plugins.paths',
  'plugins.cluster.name',
  'plugins.cluster.address',
])

/** Whether daemons differ in this key by its nature. */
export function isOfMachine(key: string): boolean {
  return OF_A_MACHINE.has(key)
}

/**
 * A section as it was written, without the values that hold as well when they are not written. As it is if its schema
 * requires something.
 */
export function withoutDefaults(schema: v.GenericSchema, section: unknown): unknown {
  const defaults = v.safeParse(schema, {})
  return defaults.success ? omitSame(section, defaults.output) : section
}
function omitSame(value: unknown, other: unknown): unknown {
  if (!isTree(value) || !isTree(other)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const left = omitSame(item, other[key])
      const isSame = Object.hasOwn(other, key) && canonicalJson([left]) === canonicalJson([other[key]])
      return isSame ? [] : [[key, left]]
    }),
  )
}

/**
 * A digest of the value of each key, by dotted key, to find what differs between the configurations of two daemons. Made
 * with a secret that both have, so that no value can be guessed from it. Keys of a machine are left out.
 */
export function configDigests(config: unknown, secret: Uint8Array): ReadonlyMap<string, string> {
  const digests = new Map<string, string>()
  const add = (value: unknown, path: readonly string[]): void => {
    const key = path.join('.')
    if (value === undefined || isOfMachine(key)) return
    if (isTree(value)) for (const [name, item] of Object.entries(value)) add(item, [...path, name])
    else
      digests.set(
        key,
        createHmac('sha256', secret)
          .update(canonicalJson([key, value]))
          .digest('base64url')
          .slice(0, 16),
      )
  }
  add(config, [])
  return digests
}
