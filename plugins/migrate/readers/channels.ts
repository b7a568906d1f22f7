import { commandLine, omitUndefined } from 'svc/sdk'
import type { HomeDraft } from '../model.ts'
import { entryOf, fieldsOf, flagOf, listOf, numberOf, textOf, textsOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'

/** Looks up a variable in the files of the source; `undefined` when it is not there. */
export type Variables = (name: string) => string | undefined

interface Mapping {
  /** Field here, and names of the field there. */
  readonly secrets: Readonly<Record<string, readonly string[]>>
  readonly texts: Readonly<Record<string, readonly string[]>>
  readonly required: readonly string[]
  /** The variable that the other systems read when the configuration has neither a value nor the name of one. */
  readonly variables?: Readonly<Record<string, string>>
  /** Fields that are put together here. */
  further?(fields: Fields): Fields
}
/** Fields by channel: those of OpenClaw, then those of OpenFang, where `<name>_env` names a variable. */
const mappings: Readonly<Record<string, Mapping>> = {
  telegram: {
    secrets: { token: ['botToken', 'token', 'bot_token'], webhook_secret: ['webhookSecret', 'webhook_secret'] },
    texts: {},
    required: ['token'],
    variables: { token: 'TELEGRAM_BOT_TOKEN' },
  },
  discord: {
    secrets: { token: ['token', 'bot_token'] },
    texts: {},
    required: ['token'],
    variables: { token: 'DISCORD_BOT_TOKEN' },
  },
  slack: {
    secrets: {
      token: ['botToken', 'bot_token'],
      app_token: ['appToken', 'app_token'],
      signing_secret: ['signingSecret', 'signing_secret'],
    },
    texts: {},
    required: ['token'],
    variables: { token: 'SLACK_BOT_TOKEN', app_token: 'SLACK_APP_TOKEN' },
  },
  matrix: {
    secrets: { token: ['accessToken', 'access_token'], password: ['password'] },
    texts: { base_url: ['homeserver', 'homeserver_url'], user: ['userId', 'user_id'] },
    required: ['base_url'],
    variables: { token: 'MATRIX_ACCESS_TOKEN' },
  },
  mattermost: {
    secrets: { token: ['botToken', 'token'] },
    texts: { base_url: ['baseUrl', 'server_url', 'url'] },
    required: ['token', 'base_url'],
    variables: { token: 'MATTERMOST_TOKEN' },
  },
  irc: {
    secrets: { token: ['password'], nickserv_password: ['nickserv_password'] },
    texts: { nick: ['nick', 'nickname'] },
    required: ['nick'],
    further: ircFields,
  },
  email: {
    secrets: { token: ['password'] },
    texts: { address: ['username'] },
    required: ['base_url', 'smtp_url', 'address', 'token'],
    variables: { token: 'EMAIL_PASSWORD' },
    further: emailFields,
  },
  xmpp: {
    secrets: { token: ['password'] },
    texts: { jid: ['jid'] },
    required: ['jid', 'token'],
    variables: { token: 'XMPP_PASSWORD' },
    further: xmppFields,
  },
  mqtt: {
    secrets: { token: ['password'] },
    texts: { username: ['username'], client_id: ['client_id'], publish_topic: ['publish_topic'] },
    required: ['base_url', 'subscribe_topics'],
    variables: { username: 'MQTT_USERNAME', token: 'MQTT_PASSWORD' },
    further: mqttFields,
  },
  ntfy: {
    secrets: { token: ['token'] },
    texts: { base_url: ['server_url'], topic: ['topic'] },
    required: ['topic'],
    variables: { token: 'NTFY_TOKEN' },
  },
  gotify: {
    secrets: { token: ['app_token'], client_token: ['client_token'] },
    texts: { base_url: ['server_url'] },
    required: ['base_url', 'token', 'client_token'],
    variables: { token: 'GOTIFY_APP_TOKEN', client_token: 'GOTIFY_CLIENT_TOKEN' },
  },
}
const WEB_MODE = `'{"mode": "web"}'`
const NOT_OVER: Readonly<Record<string, string>> = {
  whatsapp:
    'its sign-in is bound to the other system: to link the phone anew, first ' +
    `${commandLine(`channels add whatsapp --fields ${WEB_MODE}`)}, then ${commandLine('channels login whatsapp')}`,
  signal: 'there is no adapter for it here',
}
/** Keys of `channels` that are no channel. */
const NO_CHANNEL = new Set(['defaults', 'modelByChannel'])

export interface ChannelSource {
  /** `[channels]`: a table by channel. */
  readonly section: Fields
  readonly variables: Variables
  /** Told of the secrets that are found. */
  readonly foundSecret: (secret: string) => void
}

/** A channel for each table; what is unknown, or lacks what it needs, is left with the reason. */
export function readChannels(draft: HomeDraft, { section, ...source }: ChannelSource): void {
  for (const [name, value] of Object.entries(section)) {
    if (NO_CHANNEL.has(name)) continue
    const channel = name.toLowerCase()
    const mapping = Object.hasOwn(mappings, channel) ? mappings[channel] : undefined
    if (!mapping) {
      draft.leave('channel', name, entryOf(NOT_OVER, channel) ?? 'there is no counterpart of it here')
      continue
    }
    for (const [account, fields] of accountsOf(value)) readAccount(draft, channel, account, fields, mapping, source)
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
  { variables, foundSecret }: Omit<ChannelSource, 'section'>,
): void {
  const id = account.toLowerCase().replaceAll(/[^a-z\d_-]+/g, '-')
  const lacking: string[] = []
  const found: Record<string, unknown> = {}
  for (const [key, names] of Object.entries({ ...mapping.secrets, ...mapping.texts })) {
    const value = firstValue(fields, [names, mapping.variables?.[key]], variables, lacking)
    if (value === undefined) continue
    found[key] = value
    if (key in mapping.secrets) foundSecret(value)
  }
  Object.assign(found, mapping.further?.(fields))
  const missing = mapping.required.filter((key) => found[key] === undefined)
  const name = account === 'default' ? channel : `${channel}/${account}`
  if (missing.length > 0) {
    const verb = lacking.length === 1 ? 'is' : 'are'
    const why = lacking.length > 0 ? `${lacking.join(' and ')} ${verb} not in the folder` : 'it is not set there'
    draft.leave(
      'channel',
      name,
      `it needs ${missing.join(', ')}, and ${why}: ${commandLine(`channels add ${channel}`)}`,
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

/**
 * A value, a variable in braces, a reference `{ source: "env", id }`, the name of a variable in `<name>_env`, or else the
 * usual variable.
 */
function firstValue(
  fields: Fields,
  [names, usual]: readonly [names: readonly string[], usual: string | undefined],
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
  return usual === undefined ? undefined : look(usual)
}

function ircFields(fields: Fields): Fields {
  const host = textOf(fields['host'] ?? fields['server'])
  if (host === undefined) return {}
  const tls = flagOf(fields['tls'] ?? fields['use_tls']) ?? true
  const channels = textsOf(fields['channels'])
  return {
    base_url: addressOf(tls ? 'ircs' : 'irc', host, fields['port']),
    ...(channels.length > 0 && { channels }),
  }
}

const SMTPS_PORT = 465
const IMAP_PORT = 143
function emailFields(fields: Fields): Fields {
  const [imap, smtp] = [textOf(fields['imap_host']), textOf(fields['smtp_host'])]
  const [imapPort, smtpPort] = [numberOf(fields['imap_port']), numberOf(fields['smtp_port'])]
  const [folder] = textsOf(fields['folders'])
  return omitUndefined({
    base_url: imap && addressOf(imapPort === IMAP_PORT ? 'imap' : 'imaps', imap, imapPort),
    smtp_url: smtp && addressOf(smtpPort === SMTPS_PORT ? 'smtps' : 'smtp', smtp, smtpPort),
    folder,
  })
}

function xmppFields(fields: Fields): Fields {
  const host = textOf(fields['server'])
  const rooms = textsOf(fields['rooms'])
  return {
    ...(host !== undefined && { base_url: addressOf('xmpp', host, fields['port']) }),
    ...(rooms.length > 0 && { rooms }),
  }
}

/** The schemes of the Rust client are `tcp` and `ssl`. */
function mqttFields(fields: Fields): Fields {
  const url = textOf(fields['broker_url'])
  const topic = textOf(fields['subscribe_topic'])
  const tls = flagOf(fields['use_tls']) ?? false
  const qos = numberOf(fields['qos'])
  return omitUndefined({
    base_url: url?.replace(/^tcp:/i, tls ? 'mqtts:' : 'mqtt:').replace(/^ssl:/i, 'mqtts:'),
    subscribe_topics: topic && [topic],
    qos: qos === undefined ? undefined : Math.min(qos, 1),
  })
}

const addressOf = (scheme: string, host: string, port: unknown): string => {
  const number = numberOf(port)
  return `${scheme}://${host}${number === undefined ? '' : `:${number}`}`
}

/** `tg:123` and `123` are the same person; everybody stays everybody only where the other system said so. */
function usersOf(fields: Fields, channel: string): readonly string[] | undefined {
  const given =
    fields['allowFrom'] ?? fieldsOf(fields['dm'])['allowFrom'] ?? fields['allowed_users'] ?? fields['allowed_senders']
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
const dmPolicy = (name: string | undefined): string | undefined => name && (entryOf(dmPolicies, name) ?? 'allowed_only')
const groupPolicy = (name: string | undefined): string | undefined =>
  name && (entryOf(groupPolicies, name) ?? 'mention_only')
