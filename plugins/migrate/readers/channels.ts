import { commandLine, omitUndefined } from 'svc/sdk'
import type { HomeDraft } from '../model.ts'
import { fieldsOf, flagOf, listOf, numberOf, textOf, textsOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'

/** Looks up a variable in the files of the source; `undefined` when it is not there. */
export type Variables = (name: string) => string | undefined

interface Mapping {
  /** Field here, and names of the field there. */
  readonly secrets: Readonly<Record<string, readonly string[]>>
  readonly texts: Readonly<Record<string, readonly string[]>>
  readonly required: readonly string[]
}
/** Fields by channel: those of OpenClaw, then those of OpenFang, where `<name>_env` names a variable. */
const mappings: Readonly<Record<string, Mapping>> = {
  telegram: {
    secrets: { token: ['botToken', 'token', 'bot_token'], webhook_secret: ['webhookSecret', 'webhook_secret'] },
    texts: {},
    required: ['token'],
  },
  discord: { secrets: { token: ['token', 'bot_token'] }, texts: {}, required: ['token'] },
  slack: {
    secrets: {
      token: ['botToken', 'bot_token'],
      app_token: ['appToken', 'app_token'],
      signing_secret: ['signingSecret', 'signing_secret'],
    },
    texts: {},
    required: ['token'],
  },
  matrix: {
    secrets: { token: ['accessToken', 'access_token'], password: ['password'] },
    texts: { base_url: ['homeserver', 'homeserver_url'], user: ['userId', 'user_id'] },
    required: ['base_url'],
  },
  mattermost: {
    secrets: { token: ['botToken', 'token'] },
    texts: { base_url: ['baseUrl', 'server_url', 'url'] },
    required: ['token', 'base_url'],
  },
  irc: {
    secrets: { token: ['password'], nickserv_password: ['nickserv_password'] },
    texts: { nick: ['nick', 'nickname'] },
    required: ['nick'],
  },
}
const NOT_OVER: Readonly<Record<string, string>> = {
  whatsapp: `its sign-in is bound to the other system: sign in anew with \`${commandLine('channels login whatsapp')}\``,
  signal: 'there is no adapter for it here',
}
/** Keys of `channels` that are no channel. */
const NO_CHANNEL = new Set(['defaults', 'modelByChannel'])

export interface ChannelSource {
  /** `[channels]`: a table by channel. */
  readonly section: Fields
  readonly variables: Variables
}

/** A channel for each table; what is unknown, or lacks what it needs, is left with the reason. */
export function readChannels(draft: HomeDraft, { section, variables }: ChannelSource): void {
  for (const [name, value] of Object.entries(section)) {
    if (NO_CHANNEL.has(name)) continue
    const channel = name.toLowerCase()
    const mapping = Object.hasOwn(mappings, channel) ? mappings[channel] : undefined
    if (!mapping) {
      draft.leave('channel', name, NOT_OVER[channel] ?? 'there is no counterpart of it here')
      continue
    }
    for (const [account, fields] of accountsOf(value)) readAccount(draft, channel, account, fields, mapping, variables)
  }
}

/** `accounts` by name (OpenClaw), a list of tables (OpenFang), or the table itself. */
function accountsOf(value: unknown): readonly (readonly [string, Fields])[] {
  if (Array.isArray(value))
    return listOf(value).map((one, index) => {
      const fields = fieldsOf(one)
      return [textOf(fields['account_id']) ?? (index === 0 ? 'default' : `account-${index + 1}`), fields]
    })
  const { accounts, ...common } = fieldsOf(value)
  const named = Object.entries(fieldsOf(accounts))
  return named.length === 0
    ? [['default', common]]
    : named.map(([name, fields]) => [name, { ...common, ...fieldsOf(fields) }])
}

function readAccount(
  draft: HomeDraft,
  channel: string,
  account: string,
  fields: Fields,
  mapping: Mapping,
  variables: Variables,
): void {
  const id = account.toLowerCase().replaceAll(/[^a-z\d_-]+/g, '-')
  const lacking: string[] = []
  const found: Record<string, unknown> = {}
  for (const [key, names] of Object.entries({ ...mapping.secrets, ...mapping.texts })) {
    const value = firstValue(fields, names, variables, lacking)
    if (value !== undefined) found[key] = value
  }
  if (channel === 'irc') Object.assign(found, ircFields(fields))
  const missing = mapping.required.filter((key) => found[key] === undefined)
  const name = account === 'default' ? channel : `${channel}/${account}`
  if (missing.length > 0) {
    const why = lacking.length > 0 ? `the variable ${lacking.join(', ')} is not in the folder` : 'it is not set there'
    draft.leave(
      'channel',
      name,
      `it needs ${missing.join(', ')}, and ${why}: \`${commandLine(`channels add ${channel}`)}\``,
    )
    return
  }
  const overrides = fieldsOf(fields['overrides'])
  const agent = textOf(fields['default_agent'])
  draft.channels.push({
    channel,
    account: id,
    agent,
    fields: omitUndefined({
      ...found,
      allowed_users: usersOf(fields, channel),
      dm_policy: dmPolicy(textOf(fields['dmPolicy'] ?? fieldsOf(fields['dm'])['policy'] ?? overrides['dm_policy'])),
      group_policy: groupPolicy(textOf(fields['groupPolicy'] ?? overrides['group_policy'])),
    }),
  })
}

/** A value, a variable in braces, a reference `{ source: "env", id }`, or the name of a variable in `<name>_env`. */
function firstValue(
  fields: Fields,
  names: readonly string[],
  variables: Variables,
  lacking: string[],
): string | undefined {
  const look = (variable: string): string | undefined => {
    const value = variables(variable)
    if (value === undefined || value === '') lacking.push(variable)
    return value === '' ? undefined : value
  }
  for (const name of names) {
    const variable = textOf(fields[`${name}_env`])
    if (variable !== undefined) return look(variable)
    const reference = fieldsOf(fields[name])
    const id = textOf(reference['id'])
    if (reference['source'] === 'env' && id !== undefined) return look(id)
    const text = textOf(fields[name])
    const [, braced] = /^\$\{([A-Za-z_]\w*)\}$/.exec(text ?? '') ?? []
    if (braced !== undefined) return look(braced)
    if (text !== undefined) return text
  }
  return undefined
}

function ircFields(fields: Fields): Fields {
  const host = textOf(fields['host'] ?? fields['server'])
  if (host === undefined) return {}
  const tls = flagOf(fields['tls'] ?? fields['use_tls']) ?? true
  const port = numberOf(fields['port'])
  const channels = textsOf(fields['channels'])
  return {
    base_url: `${tls ? 'ircs' : 'irc'}://${host}${port === undefined ? '' : `:${port}`}`,
    ...(channels.length > 0 && { channels }),
  }
}

/** `tg:123` and `123` are the same person; everybody stays everybody only where the other system said so. */
function usersOf(fields: Fields, channel: string): readonly string[] | undefined {
  const given = fields['allowFrom'] ?? fieldsOf(fields['dm'])['allowFrom'] ?? fields['allowed_users']
  const users = given === undefined ? [] : textsOf(given)
  const plain = users.map((user) => user.replace(new RegExp(`^(?:${channel}|tg|user):`, 'i'), ''))
  return plain.length === 0 ? undefined : plain
}
const dmPolicies: Readonly<Record<string, string>> = {
  open: 'respond',
  respond: 'respond',
  allowlist: 'allowed_only',
  allowed_only: 'allowed_only',
  // Who was paired there is not known here.
  pairing: 'allowed_only',
  disabled: 'ignore',
  ignore: 'ignore',
}
const groupPolicies: Readonly<Record<string, string>> = {
  all: 'all',
  // Groups there are answered when the bot is mentioned, unless each of them says otherwise.
  open: 'mention_only',
  allowlist: 'mention_only',
  mention_only: 'mention_only',
  commands_only: 'commands_only',
  disabled: 'ignore',
  ignore: 'ignore',
}
const dmPolicy = (name: string | undefined): string | undefined => (name ? (dmPolicies[name] ?? 'allowed_only') : name)
const groupPolicy = (name: string | undefined): string | undefined =>
  name ? (groupPolicies[name] ?? 'mention_only') : name
