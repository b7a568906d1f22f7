import type { TomlTable } from 'smol-toml'
import { hostPatternProblem, NestingError, parseToml, renderToml, suggest, TomlError, toUnknownKey } from 'svc/internal'
import type { UnknownKey } from 'svc/internal'
import { parse, Refusal } from 'svc/sdk'
import { QUIET_HOURS } from './contract.ts'
import { idleKeys, knownKeys, ManifestDocument } from './manifest-schema.ts'
import { profileTools } from './profiles.ts'

export interface ParsedManifest {
  readonly toml: string
  readonly document: ManifestDocument
  /** One sentence for each thing in the text that is kept but has no effect. */
  readonly warnings: readonly string[]
  /** Keys that mean nothing, which are among the warnings. */
  readonly unknown: readonly UnknownKey[]
}
/** New values by path, such as `{ 'model.provider': 'openai' }`. `undefined` removes the key. */
export type ManifestEdits = Readonly<
  Record<
    string,
    string | number | boolean | readonly string[] | readonly Readonly<Record<string, string>>[] | undefined
  >
>

/** Throws `invalid_request` with line and column for malformed TOML, and with the key for a value of the wrong kind. */
export function parseManifest(toml: string): ParsedManifest {
  const table = readTable(toml)
  const document = withProfile(parse(ManifestDocument, table, 'manifest'), table)
  const unknown = unknownKeys(table)
  const told = unknown.map(({ path, nearest }) => `unknown key "${path}" is kept and has no effect${suggest(nearest)}`)
  return {
    toml,
    document,
    unknown,
    warnings: [...told, ...idle(table), ...withoutEffect(document)],
  }
}

/** A profile grants its tools where the manifest itself has no list of tools; an empty list grants none. */
function withProfile(document: ManifestDocument, table: TomlTable): ManifestDocument {
  const { capabilities } = table
  if (document.profile === undefined || (isTable(capabilities) && Object.hasOwn(capabilities, 'tools'))) return document
  return { ...document, capabilities: { ...document.capabilities, tools: [...(profileTools[document.profile] ?? [])] } }
}

/** The same manifest with some values replaced. Unknown keys survive, comments do not. */
export function editManifest(toml: string, edits: ManifestEdits): string {
  const table = readTable(toml)
  for (const [path, value] of Object.entries(edits)) {
    const keys = path.split('.')
    const last = keys.pop() ?? path
    const parent = keys.reduce(openTable, table)
    if (value === undefined) delete parent[last]
    else
      parent[last] =
        typeof value === 'object' ? value.map((part) => (typeof part === 'string' ? part : { ...part })) : value
  }
  return renderToml(table)
}

/** The table under a key; anything else there is replaced by an empty one. */
function openTable(parent: TomlTable, key: string): TomlTable {
  const found = parent[key]
  if (isTable(found)) return found
  const made: TomlTable = {}
  parent[key] = made
  return made
}

/** Throws `invalid_request` with line and column. */
export function readTable(toml: string): TomlTable {
  // A half of a surrogate pair would come back from the database as another character.
  if (!toml.isWellFormed()) throw new Refusal('invalid_request', 'manifest_toml: is not well-formed Unicode')
  try {
    return parseToml(toml)
  } catch (error) {
    if (error instanceof NestingError)
      throw new Refusal('invalid_request', `manifest_toml: ${error.message}`, { cause: error })
    if (!(error instanceof TomlError)) throw error
    const { line, column } = error
    const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '')
    throw new Refusal('invalid_request', `manifest_toml: malformed TOML at line ${line}, column ${column}: ${reason}`, {
      details: { line, column, reason },
      cause: error,
    })
  }
}

function unknownKeys(table: TomlTable): readonly UnknownKey[] {
  const found = [...knownKeys].flatMap(([section, keys]) => {
    const tables = tablesAt(table, section)
    const path = section === '' ? '' : `${section}.`
    return tables.flatMap((part) =>
      Object.keys(part).flatMap((key) => (keys.has(key) ? [] : [toUnknownKey(key, keys, path)])),
    )
  })
  return [...new Map(found.map((key) => [key.path, key])).values()].slice(0, 100)
}

/** A table by its path, or the tables of a list; the whole by an empty path. */
function tablesAt(table: TomlTable, path: string): readonly TomlTable[] {
  if (path === '') return [table]
  return path
    .split('.')
    .reduce<readonly TomlTable[]>((at, key) => at.flatMap((one) => [one[key]].flat().filter(isTable)), [table])
}

/**
 * Keys that are set although their feature does not exist. Default values do not count: manifests that are written out
 * in full contain them.
 */
function idle(table: TomlTable): string[] {
  return idleKeys.flatMap((path) => {
    const [first = '', second] = path.split('.')
    const at = table[first]
    const given =
      second === undefined ? at : isTable(at) ? (second === '*' ? Object.keys(at)[0] : at[second]) : undefined
    if (given === undefined || isUsual(path, given)) return []
    return [`"${path.replace('.*', '')}" is kept and has no effect yet`]
  })
}
function isUsual(path: string, given: unknown): boolean {
  const [first = '', second] = path.split('.')
  const usual: unknown = Object.entries(defaults).find(([key]) => key === first)?.[1]
  const value = second === undefined ? usual : isTable(usual) ? usual[second] : undefined
  return (
    JSON.stringify(given) === JSON.stringify(value) || given === false || (Array.isArray(given) && given.length === 0)
  )
}
const defaults = parse(ManifestDocument, {}, 'manifest')

function withoutEffect(document: ManifestDocument): string[] {
  const { quiet_hours: quiet } = document.autonomous
  return [
    ...(quiet === undefined || quiet.trim() === '' || QUIET_HOURS.test(quiet)
      ? []
      : [`"autonomous.quiet_hours" has no effect: "${quiet.slice(0, 50)}" is not two times such as 22:00-07:00`]),
    ...document.capabilities.network.flatMap((pattern) => {
      const problem = hostPatternProblem(pattern)
      return problem === undefined ? [] : [`"capabilities.network" allows nothing with it: ${problem}`]
    }),
    ...(document.module === 'builtin:chat'
      ? []
      : [`module "${document.module}" is not available; the agent runs as "builtin:chat"`]),
    // Decision: a manifest cannot name a folder of the machine; a manifest may come from an agent.
    ...(document.workspace === undefined && Object.keys(document.workspaces).length === 0
      ? []
      : [
          '"workspace" and "workspaces" are kept and have no effect: an agent works in its own folder below the ' +
            'data directory',
        ]),
  ]
}

export function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** Throws `payload_too_large`. */
export function checkManifestSize(manifestToml: string, limit: number): void {
  if (Buffer.byteLength(manifestToml) <= limit) return
  throw new Refusal('payload_too_large', `manifest_toml: at most ${limit} bytes (plugins.agents.max_manifest_bytes)`, {
    details: { limit_bytes: limit },
  })
}
