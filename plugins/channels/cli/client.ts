import * as v from 'valibot'
import { clientArgs, omitUndefined } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const Row = v.looseObject({
  name: v.string(),
  display_name: v.string(),
  category: v.string(),
  available: v.boolean(),
  configured: v.boolean(),
  enabled: v.boolean(),
  state: v.string(),
})
export type Row = v.InferOutput<typeof Row>
const List = v.looseObject({ channels: v.array(Row), total: v.number() })

export const Status = v.looseObject({
  state: v.string(),
  started_at: v.nullable(v.string()),
  last_message_at: v.nullable(v.string()),
  messages_received: v.number(),
  messages_sent: v.number(),
  failed: v.number(),
  outbox: v.number(),
  dead_letters: v.number(),
  next_retry_at: v.nullable(v.string()),
  last_error: v.nullable(v.string()),
  help: v.nullable(v.string()),
  warnings: v.array(v.string()),
})
const Account = v.looseObject({
  account_id: v.string(),
  source: v.string(),
  enabled: v.boolean(),
  has_token: v.boolean(),
  sign_in: v.boolean(),
  status: Status,
})
export const Field = v.looseObject({
  key: v.string(),
  label: v.string(),
  type: v.string(),
  description: v.string(),
  required: v.boolean(),
  advanced: v.boolean(),
  options: v.optional(v.array(v.string()), []),
})
export type Field = v.InferOutput<typeof Field>
export const View = v.looseObject({
  ...Row.entries,
  account_list: v.array(Account),
  fields: v.array(Field),
  sign_in: v.boolean(),
  setup_time: v.string(),
  setup_steps: v.array(v.string()),
  webhook_path: v.string(),
})
export type View = v.InferOutput<typeof View>

export const listChannels = (client: DaemonClient): Promise<v.InferOutput<typeof List>> =>
  client.call('GET', '/api/channels', List)
export const readChannel = (client: DaemonClient, name: string): Promise<View> =>
  client.call('GET', channelPath(name), View)
const TestResult = v.looseObject({ status: v.string(), message: v.string(), help: v.optional(v.string()) })
/** Checks the credentials, or sends a message to a chat. */
export const testChannel = (client: DaemonClient, name: string, options: { chat?: string; account?: string } = {}) =>
  client.call('POST', channelPath(name, 'test'), TestResult, {
    body: omitUndefined({ chat_id: options.chat, account_id: options.account }),
    // Once to connect and once to check, of half a minute each.
    timeoutMs: 90_000,
  })
/** The path of a channel, with the account if one was named. */
export function channelPath(name: string, action = '', account?: string): string {
  const query = account === undefined ? '' : `?account_id=${encodeURIComponent(account)}`
  return `/api/channels/${encodeURIComponent(name)}${action === '' ? '' : `/${action}`}${query}`
}

/** Arguments of the commands for one channel. */
export const channelArgs = {
  channel: { type: 'positional', required: true, description: 'Name of the channel, such as telegram' },
  account: { type: 'string', description: 'One of several accounts', valueHint: 'id' },
  ...clientArgs,
} as const
