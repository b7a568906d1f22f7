import { MASK } from 'svc/internal'
import { parse, Refusal } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import { coerce, commonFields, fieldsOf, fileOnlyReason } from './fields.ts'
import type { Field } from './fields.ts'
import { splitFields } from './file-accounts.ts'
import { AccountSettings } from './settings.ts'

type Table = Readonly<Record<string, unknown>>
export interface FieldChanges {
  readonly settings: Table
  readonly config: Table
  readonly secrets: Table
  /** `null` takes a field back to its default; a masked secret stays as it is. */
  readonly changes: Table
}
export interface MergedFields {
  readonly settings: Record<string, unknown>
  readonly config: Record<string, unknown>
  readonly secrets: Record<string, unknown>
  /** Addresses that were not there before. */
  readonly newAddresses: readonly string[]
}

/**
 * The fields of an account with changes, checked by the schema of the adapter. Throws `invalid_request`, and
 * `forbidden` for a field that only the file may set.
 */
export function mergeFields(
  adapter: ChannelAdapter,
  { settings, config, secrets, changes }: FieldChanges,
): MergedFields {
  const fields = fieldsOf(adapter.config)
  const known = new Map([...fields, ...commonFields()].map((field) => [field.key, field]))
  const read = Object.entries(changes)
    .map(([key, value]): [string, unknown] => [key, coerce(known.get(key) ?? { type: 'text' }, value)])
    .filter(([key, value]) => !(known.get(key)?.type === 'secret' && value === MASK && secrets[key] !== undefined))
  const { common, own } = splitFields(Object.fromEntries(read))
  const isSecret = (key: string): boolean => known.get(key)?.type === 'secret'
  const newSettings = withoutNull({ ...settings, ...common })
  const all = withoutNull({ ...config, ...secrets, ...own })
  parse(AccountSettings, newSettings)
  parse(adapter.config, all)
  checkFileOnly(adapter, own)
  checkAddresses(fields, config, secrets, own)
  const entries = Object.entries(all)
  const newConfig = Object.fromEntries(entries.filter(([key]) => !isSecret(key)))
  return {
    settings: newSettings,
    config: newConfig,
    secrets: Object.fromEntries(entries.filter(([key]) => isSecret(key))),
    newAddresses: Object.entries(newConfig).flatMap(([key, value]) =>
      config[key] === value ? [] : toAddress(key, value),
    ),
  }
}

function checkFileOnly({ config }: ChannelAdapter, own: Table): void {
  for (const [key, value] of Object.entries(own)) {
    const reason = fileOnlyReason(config, key, value)
    if (reason !== undefined)
      throw new Refusal('forbidden', `${key} is set in the file only (${reason}): write the account into config.toml`)
  }
}

/** A text of the adapter may say where its secrets are sent: a stored secret does not follow it to another address. */
function checkAddresses(fields: readonly Field[], config: Table, secrets: Table, own: Table): void {
  const stored = Object.keys(secrets)
  const changed = fields.find(
    ({ key, type }) => type === 'text' && key in own && (own[key] ?? undefined) !== config[key],
  )
  const missing = stored.filter((key) => own[key] === undefined || own[key] === null)
  if (!changed || missing.length === 0) return
  throw new Refusal(
    'invalid_request',
    `${changed.key}: it may decide where stored secrets are sent, so send ${missing.join(', ')} again with it`,
  )
}

function toAddress(key: string, value: unknown): readonly string[] {
  if (typeof value !== 'string' || value === '') return []
  const url = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? URL.parse(value) : null
  if (url) return [`https://${url.host}`]
  return /(^|_)(url|host|server|broker|endpoint|proxy)$/.test(key) ? [`https://${value}`] : []
}
const withoutNull = (table: Table): Record<string, unknown> =>
  Object.fromEntries(Object.entries(table).filter(([, value]) => value !== null && value !== undefined))
