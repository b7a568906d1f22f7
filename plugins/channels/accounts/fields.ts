import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import type { ConfigSchema } from 'svc/sdk'
import { AccountSettings } from './settings.ts'

export type FieldType = 'secret' | 'text' | 'number' | 'boolean' | 'list' | 'choice'
/** A field of an account, for forms, prompts and documents. */
export interface Field {
  readonly key: string
  readonly label: string
  readonly type: FieldType
  readonly description: string
  readonly required: boolean
  /** Has a default, and is no choice on which other fields depend; or is one of the common keys. */
  readonly advanced: boolean
  readonly options?: readonly string[]
}

type Schema = v.GenericSchema & { readonly wrapped?: Schema; readonly default?: unknown }

/** The fields of an adapter; empty for one whose schema is not an object. */
export function fieldsOf(schema: ConfigSchema): readonly Field[] {
  return Object.entries(entriesOf(schema)).map(([key, entry]) => toField(key, entry, false))
}
/** The fields that every channel has. */
export const commonFields = (): readonly Field[] =>
  Object.entries(AccountSettings.entries).map(([key, entry]) => toField(key, entry as Schema, true))

export const secretFields = (schema: ConfigSchema): readonly string[] =>
  fieldsOf(schema).flatMap(({ key, type }) => (type === 'secret' ? [key] : []))
/** Fields of the required secrets: without them the account cannot work. */
export const requiredSecrets = (schema: ConfigSchema): readonly string[] =>
  fieldsOf(schema).flatMap(({ key, type, required }) => (type === 'secret' && required ? [key] : []))

/** Why only the file may give a field another value than its default; `undefined` when the API may too. */
export function fileOnlyReason(schema: ConfigSchema, key: string, value: unknown): string | undefined {
  const entries = entriesOf(schema)
  const entry = Object.hasOwn(entries, key) ? entries[key] : undefined
  if (!entry || value === null || value === undefined) return undefined
  const { file_only: isFileOnly, reason } = metadataOf(entry)
  const standard = v.safeParse(entry, undefined)
  const isStandard = standard.success && isDeepStrictEqual(standard.output, value)
  return isFileOnly === true && !isStandard ? String(reason) : undefined
}

/** The configuration of an account with the defaults of its fields. A field that is missing or wrong is left out. */
export function withFieldDefaults(
  schema: ConfigSchema,
  config: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(entriesOf(schema)).flatMap(([key, entry]) => {
      const read = v.safeParse(entry, config[key])
      return read.success ? [[key, read.output]] : []
    }),
  )
}

/** Text from a form or a command line as the type of the field. A list may be one of the options instead. */
export function coerce({ type, options = [] }: Pick<Field, 'type' | 'options'>, value: unknown): unknown {
  const read = fromText(type, value)
  if (type !== 'list' || !Array.isArray(read) || read.length !== 1) return read
  return options.includes(read[0]) ? read[0] : read
}
function fromText(type: FieldType, value: unknown): unknown {
  if (typeof value !== 'string') return value
  const text = value.trim()
  if (type === 'number' && /^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (type === 'boolean' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  if (type === 'list')
    return text
      .split(/[\n,]/)
      .map((item) => item.trim())
      .filter((item) => item !== '')
  return type === 'choice' ? text : value
}

function entriesOf(schema: v.GenericSchema): Readonly<Record<string, Schema>> {
  const inner = unwrap(schema as Schema)
  return 'entries' in inner ? (inner.entries as Readonly<Record<string, Schema>>) : {}
}
function unwrap(schema: Schema): Schema {
  let inner = schema
  while (inner.wrapped) inner = inner.wrapped
  return inner
}

function toField(key: string, entry: Schema, isCommon: boolean): Field {
  const isOptional = /optional|nullish|nullable/.test(entry.type)
  const options = optionsOf(unwrap(entry))
  return {
    key,
    label: labelOf(key),
    type: typeOf(entry),
    description: descriptionOf(entry),
    required: !isOptional,
    advanced: isCommon ? key !== 'agent_name' && key !== 'allowed_users' : hasDefault(entry) && options === undefined,
    ...(options && { options }),
  }
}
function hasDefault({ default: value, wrapped }: Schema): boolean {
  return value !== undefined || (wrapped !== undefined && hasDefault(wrapped))
}
/** `base_url` is shown as "Base URL". */
function labelOf(key: string): string {
  const words = `${key.charAt(0).toUpperCase()}${key.slice(1).replaceAll('_', ' ')}`
  return words.replaceAll(/\b(aes|api|ca|dm|id|imap|jid|sasl|smtp|url)\b/gi, (word) => word.toUpperCase())
}
function typeOf(entry: Schema): FieldType {
  if (metadataOf(entry)['secret'] === true) return 'secret'
  const inner = unwrap(entry)
  switch (inner.type) {
    case 'union':
      return membersOf(inner).some(({ type }) => type === 'array') ? 'list' : 'text'
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'array':
      return 'list'
    case 'picklist':
      return 'choice'
    default:
      return 'text'
  }
}
function optionsOf(schema: Schema): readonly string[] | undefined {
  if (schema.type === 'union')
    return membersOf(schema)
      .map(optionsOf)
      .find((options) => options !== undefined)
  return 'options' in schema && Array.isArray(schema.options) ? schema.options.map(String) : undefined
}
function membersOf(schema: Schema): readonly Schema[] {
  return 'options' in schema && Array.isArray(schema.options) ? (schema.options as Schema[]) : []
}
function metadataOf(entry: Schema): Readonly<Record<string, unknown>> {
  const own = v.getMetadata(entry as Parameters<typeof v.getMetadata>[0])
  return entry.wrapped ? { ...metadataOf(entry.wrapped), ...own } : own
}
function descriptionOf(entry: Schema): string {
  const own = v.getDescription(entry as Parameters<typeof v.getDescription>[0])
  return own ?? (entry.wrapped ? descriptionOf(entry.wrapped) : '')
}
