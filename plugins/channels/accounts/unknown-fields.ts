import type { ChannelAdapter } from 'svc/channels'
import { findNearest, suggest } from 'svc/internal'
import { fieldsOf } from './fields.ts'
import { AccountSettings } from './settings.ts'

/** The fields of an account that nothing reads, each with the nearest known one, or with those that there are. */
export function describeUnknownFields(adapter: ChannelAdapter, given: Readonly<Record<string, unknown>>): string[] {
  const own = fieldsOf(adapter.config).map(({ key }) => key)
  // The schema of an adapter need not be an object with fields.
  if (own.length === 0) return []
  const known = [...own, ...Object.keys(AccountSettings.entries)]
  return Object.keys(given)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const hint = suggest(findNearest(key, known)) || `; there are ${own.join(', ')}, and those of every channel`
      return `${key}: unknown field${hint}`
    })
}
