import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Wakeup } from '../schedules/contract.ts'
import type { Definition, Setting } from './definition.ts'
import type { Values } from './schema.ts'

/** Throws `invalid_request` that names the setting, for one that there is not and for a value that it cannot have. */
export function checkValues({ settings }: Definition, values: Values): Values {
  const checked: Record<string, string | boolean> = {}
  for (const [key, value] of Object.entries(values)) {
    const setting = settings.find((each) => each.key === key)
    if (!setting) {
      const keys = settings.map((each) => each.key)
      const there = keys.length === 0 ? 'it has none' : `its settings are ${keys.join(', ')}`
      throw refuse(key, `there is no such setting${suggest(findNearest(key, keys))}; ${there}`)
    }
    checked[key] = checkValue(setting, value)
  }
  return checked
}

/** The values given, and the defaults of the others. */
export function withDefaults({ settings }: Definition, values: Values): Values {
  return Object.fromEntries(settings.map((setting) => [setting.key, values[setting.key] ?? defaultOf(setting)]))
}

/** For the system prompt: what the operator chose. */
export function describeValues(definition: Definition, values: Values): string {
  if (definition.settings.length === 0) return ''
  const all = withDefaults(definition, values)
  const lines = definition.settings.map((setting) => {
    const value = all[setting.key]
    if (typeof value === 'boolean') return `- ${setting.label} (${setting.key}): ${value ? 'on' : 'off'}`
    const label = setting.options.find((option) => option.value === value)?.label
    const shown = value === '' || value === undefined ? 'not set' : value
    return `- ${setting.label} (${setting.key}): ${shown}${label === undefined || label === value ? '' : ` (${label})`}`
  })
  return `## Settings\nThe operator chose these; they hold for this run.\n${lines.join('\n')}`
}

/** When it runs, by its settings. */
export function wakeupOf({ agent, schedule }: Definition, values: Values, intervalSecs: number): Wakeup {
  const chosen = schedule.setting === undefined ? undefined : values[schedule.setting]
  const given = typeof chosen === 'string' && chosen !== '' ? chosen : schedule.cron
  if (given === undefined) return { every_secs: agent.heartbeat_interval_secs ?? intervalSecs }
  return /^\d+$/.test(given) ? { every_secs: Number(given) } : { cron: given, tz: schedule.tz ?? 'UTC' }
}

function defaultOf({ setting_type: type, default: value, env_var: variable }: Setting): string | boolean {
  if (type === 'toggle') return value === true || value === 'true'
  return value === '' && variable !== undefined ? variable : String(value)
}

function checkValue({ key, setting_type: type, options, env_var: variable }: Setting, value: string | boolean) {
  if (type === 'toggle') {
    if (typeof value === 'boolean') return value
    if (value === 'true' || value === 'false') return value === 'true'
    throw refuse(key, 'must be true or false')
  }
  if (typeof value !== 'string') throw refuse(key, 'must be a text')
  if (type === 'select') {
    if (options.some((option) => option.value === value)) return value
    throw refuse(key, `must be one of ${options.map((option) => option.value).join(', ')}`)
  }
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) throw refuse(key, 'must be one line without control characters')
  if (variable !== undefined && !/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(value))
    throw refuse(key, 'must be the name of a variable or secret, such as ' + variable + ', never the secret itself')
  return value
}
const refuse = (key: string, why: string): Refusal => new Refusal('invalid_request', `config.${key}: ${why}`)
