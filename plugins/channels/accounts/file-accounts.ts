import * as v from 'valibot'
import { readVariable } from 'svc/internal'
import { isObject } from 'svc/sdk'
import { canonicalName } from '../names.ts'
import type { Account } from './account.ts'
import { AccountId, DEFAULT_ACCOUNT } from './account-id.ts'
import { AccountSettings } from './settings.ts'

type Table = Readonly<Record<string, unknown>>
export interface FileAccount extends Account {
  readonly source: 'file'
  /** The file says whether it is enabled, so the API cannot. */
  readonly isSwitchedByFile: boolean
  /** What is wrong with its section. */
  readonly problem: string | undefined
}

/** The accounts of `[channels.<name>]`. A wrong section is an account with a problem: the others are not affected. */
export function readFileAccounts(section: Table): readonly FileAccount[] {
  const accounts = Object.entries(section).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).filter(isObject).map((table) => readAccount(canonicalName(name), table)),
  )
  const known = new Set<string>()
  return accounts.map((account) => {
    const key = `${account.channel}/${account.id}`
    const isDuplicate = known.has(key)
    known.add(key)
    if (!isDuplicate) return account
    const problem = `there are two sections with account_id = "${account.id}"`
    return { ...account, id: `${account.id}-duplicate-${known.size}`, enabled: false, problem }
  })
}

function readAccount(channel: string, table: Table): FileAccount {
  const { enabled, account_id: accountId, ...rest } = table
  const { common, own } = splitFields(rest)
  const settings = v.safeParse(AccountSettings, common)
  const id = v.safeParse(AccountId, accountId ?? DEFAULT_ACCOUNT)
  const isFlag = enabled === undefined || typeof enabled === 'boolean'
  const problems = [
    ...(settings.success ? [] : settings.issues.map((issue) => `${v.getDotPath(issue) ?? ''}: ${issue.message}`)),
    ...(id.success ? [] : [`account_id: ${id.issues[0].message}`]),
    ...(isFlag ? [] : ['enabled: expected true or false']),
  ]
  return {
    channel,
    id: id.success ? id.output : DEFAULT_ACCOUNT,
    enabled: enabled !== false,
    isSwitchedByFile: enabled !== undefined,
    source: 'file',
    settings: settings.success ? settings.output : v.parse(AccountSettings, {}),
    ...withVariables(own),
    problem: problems.length > 0 ? problems.join('; ') : undefined,
  }
}

/** The common keys, and those of the adapter. */
export function splitFields(fields: Table): { readonly common: Table; readonly own: Table } {
  const entries = Object.entries(fields)
  const isCommon = ([key]: readonly [string, unknown]): boolean => Object.hasOwn(AccountSettings.entries, key)
  return {
    common: Object.fromEntries(entries.filter(isCommon)),
    own: Object.fromEntries(entries.filter((entry) => !isCommon(entry))),
  }
}

/** `token_env = "NAME"` is the token in a variable of the environment. */
function withVariables(given: Table): Pick<FileAccount, 'config' | 'unsetVariables'> {
  const config: Record<string, unknown> = {}
  const unsetVariables: Record<string, string> = {}
  for (const [key, value] of Object.entries(given)) {
    const field = key.endsWith('_env') ? key.slice(0, -4) : undefined
    if (field === undefined || typeof value !== 'string') config[key] = value
    else if (given[field] === undefined) {
      const secret = readVariable(value)?.trim() ?? ''
      if (secret === '') unsetVariables[field] = value
      else config[field] = secret
    }
  }
  return { config, unsetVariables }
}
