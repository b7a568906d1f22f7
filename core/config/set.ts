import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolder } from '../storage/make-folder.ts'
import { editToml } from './edit-toml.ts'
import { checkLayer, nest, splitKey } from './layer.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { MASKED_SECRET_MESSAGE } from '../schema/secret.ts'
import { ConfigError } from './problem.ts'
import { findMask } from './redact.ts'
import { findChild, findSchema, isTable, knownKeys, unwrap } from './shape.ts'
import type { Schema } from './shape.ts'
import { readText, readToml } from './sources.ts'
import { fromText } from './text-value.ts'
import { commandLine } from '../process/command-name.ts'

/**
 * Writes one dotted key into a `config.toml` (made when missing) and leaves every other line and comment as it is. The
 * file is replaced in one step with mode 0600. Throws `ConfigError` when the key is unknown, the value does not fit, or
 * the file is not valid.
 */
export async function setConfigValue(file: string, key: string, value: unknown, schema: Schema): Promise<void> {
  const path = splitKey(key)
  checkConfigValue(file, key, value, schema)
  const target = existsSync(file) ? await realpath(file) : file
  const before = existsSync(target) ? readText(target) : ''
  if (before !== '') await readToml(target) // reports a broken file with its line
  await replaceFile(target, editToml(before, path, value, file))
}
/** Throws `ConfigError` for a key that is unknown and a value that does not fit it. */
export function checkConfigValue(file: string, key: string, value: unknown, schema: Schema): void {
  const path = splitKey(key)
  checkConfigKey(file, path, schema)
  const tree = nest(path, value)
  const masked = findMask(tree, schema)
  if (masked) throw new ConfigError([{ file, key: masked.join('.'), message: MASKED_SECRET_MESSAGE }])
  const { problems } = checkLayer(schema, { file, read: () => tree, place: () => ({}) }, tree)
  if (problems.length > 0) throw new ConfigError(problems)
}
/** The value a text on the command line stands for, by the schema of its key. */
export function toConfigValue(key: string, text: string, schema: Schema): unknown {
  return fromText(findSchema(schema, splitKey(key)), text)
}

/** Throws `ConfigError` for a key that is unknown or is a whole section. */
export function checkConfigKey(file: string, path: readonly string[], schema: Schema): void {
  const key = path.join('.')
  if (path.length === 0 || ['__proto__', 'constructor', 'prototype'].some((name) => path.includes(name)))
    throw new ConfigError([{ file, key, message: 'not a key' }])
  let found = schema
  let parent = schema
  for (const [depth, part] of path.entries()) {
    const child = findChild(found, part)
    if (!child) {
      const nearest = findNearest(part, knownKeys(found))
      const known =
        nearest === undefined
          ? `; ${commandLine('config schema')} lists the known keys`
          : suggest([...path.slice(0, depth), nearest].join('.'))
      throw new ConfigError([{ file, key, message: `unknown key${known}` }])
    }
    parent = found
    found = child
  }
  // [plugins.<name>] and a named entry of a section are sections as well.
  const isSection =
    path.length === 1 || (path.length === 2 && (path[0] === 'plugins' || unwrap(parent).type === 'record'))
  if (!isTable(found) || !(isSection || knownKeys(found).length > 0)) return
  const known = knownKeys(found).join(', ')
  throw new ConfigError([
    { file, key, message: `is a section; set one of its keys${known === '' ? '' : `: ${known}`}` },
  ])
}

/** Written beside it, flushed, then renamed: a reader sees the old file or the new one. */
async function replaceFile(file: string, text: string): Promise<void> {
  makeFolder(dirname(file))
  const part = join(dirname(file), `.config.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const handle = await open(part, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(part, file)
    const folder = await open(dirname(file), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}
