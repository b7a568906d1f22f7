import { findListenAddr } from '../config/listen.ts'
import type { ListenAddr } from '../config/listen.ts'
import { findFileOnly } from '../config/find-file-only.ts'
import { findSchema } from '../config/shape.ts'
import type { Schema } from '../config/shape.ts'
import { Refusal } from '../errors/error.ts'
import type { AnyPlugin } from './define.ts'

/**
 * The address below a key of a plugin's configuration: `network.listen` of a section it owns, or `listen` of
 * `[plugins.<name>]`. Throws unless only the configuration file can set the key: nobody may open ports over the API.
 */
export function listenAddress(
  { name, config: own, sections = {} }: AnyPlugin,
  values: Readonly<Record<string, unknown>>,
  key: string,
): ListenAddr {
  const path = key.split('.')
  const [root = '', ...inside] = path
  const section = Object.hasOwn(sections, root) ? (sections[root] as Schema) : undefined
  const schema = section ?? own
  const place = section ? key : `plugins.${name}.${key}`
  const keyPath = section ? inside : path
  if (findSchema(schema, keyPath) === undefined)
    throw new Refusal('invalid_request', `ctx.listen: plugin "${name}" declares no key "${place}"`)
  const value = valueAt(values, path)
  if (findFileOnly(schema, keyPath, value) === undefined)
    throw new Refusal(
      'forbidden',
      `ctx.listen: ${place} can be set over the API. Mark it with fileOnly(…): only the configuration file opens ports`,
    )
  const address = typeof value === 'string' ? findListenAddr(value) : undefined
  if (!address)
    throw new Refusal('invalid_request', `${place}: expected an address such as "0.0.0.0:4200", not ${show(value)}`)
  return address
}

function valueAt(values: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let found: unknown = values
  for (const key of path)
    found = typeof found === 'object' && found !== null ? (found as Readonly<Record<string, unknown>>)[key] : undefined
  return found
}
const show = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value))
