import { parse, Refusal } from 'svc/sdk'
import type { ChannelAdapter } from 'svc/channels'
import type { Account } from './account.ts'
import { fieldsOf } from './fields.ts'

/** The adapter's own fields, checked. Throws `invalid_request` that names the field, and the variable it is to be in. */
export function readConfig(adapter: ChannelAdapter, account: Account): Record<string, unknown> {
  try {
    return parse(adapter.config, account.config, `[channels.${account.channel}]`)
  } catch (error) {
    const unset = describeUnset(adapter, account, true)
    if (!(error instanceof Refusal) || unset.length === 0) throw error
    throw new Refusal(error.code, [error.message, ...unset].join('; '), { details: error.details, cause: error })
  }
}

/** Optional fields that stay without a value because their variable is not set. */
export function describeUnsetVariables(adapter: ChannelAdapter, account: Account): readonly string[] {
  return describeUnset(adapter, account, false)
}

function describeUnset(adapter: ChannelAdapter, { config, unsetVariables = {} }: Account, isRequired: boolean) {
  const required = new Set(fieldsOf(adapter.config).flatMap((field) => (field.required ? [field.key] : [])))
  return Object.entries(unsetVariables)
    .filter(([field]) => config[field] === undefined && required.has(field) === isRequired)
    .map(([field, name]) => `${field}_env names the variable ${name}, which was not set when the daemon started`)
}
