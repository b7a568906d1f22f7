import * as v from 'valibot'
import { AccountId } from '../accounts/account-id.ts'

const Name = v.pipe(v.string(), v.maxLength(64), v.description('Name of the channel, such as `telegram`.'))
export const ChannelParams = v.object({ name: Name })
export const AccountParams = v.object({ name: Name, account: AccountId })
export const AccountQuery = v.object({
  account_id: v.optional(v.pipe(AccountId, v.description('One of several accounts; `default` when there is one.'))),
})

const Field = v.object({
  key: v.string(),
  label: v.string(),
  type: v.picklist(['secret', 'text', 'number', 'boolean', 'list', 'choice']),
  description: v.string(),
  placeholder: v.string(),
  env_var: v.pipe(v.nullable(v.string()), v.description('An environment variable for it, if it may have one.')),
  required: v.boolean(),
  advanced: v.boolean(),
  has_value: v.boolean(),
  options: v.optional(v.array(v.string())),
})
const Time = v.nullable(v.string())
export const Status = v.object({
  state: v.picklist([
    'disabled',
    'misconfigured',
    'connecting',
    'connected',
    'backing_off',
    'standby',
    'needs_login',
    'missing_dependency',
    'retired',
    'error',
    'not_configured',
  ]),
  connected: v.boolean(),
  started_at: v.pipe(Time, v.description('When the connection opened.')),
  last_message_at: Time,
  messages_received: v.number(),
  messages_sent: v.number(),
  failed: v.pipe(v.number(), v.description('Messages that the platform refused.')),
  outbox: v.pipe(v.number(), v.description('Messages that wait to be sent.')),
  dead_letters: v.pipe(v.number(), v.description('Messages that cannot be sent; retry or discard them.')),
  next_retry_at: Time,
  last_error: v.nullable(v.string()),
  help: v.pipe(v.nullable(v.string()), v.description('What to do when it is not connected.')),
  warnings: v.array(v.string()),
})
const Row = {
  name: v.string(),
  display_name: v.string(),
  category: v.picklist(['messaging', 'enterprise', 'social', 'developer', 'notification']),
  description: v.string(),
  icon: v.pipe(v.string(), v.description('Letters for a tile.')),
  difficulty: v.picklist(['Easy', 'Medium', 'Hard']),
  setup_time: v.string(),
  quick_setup: v.string(),
  setup_type: v.pipe(v.literal('form'), v.description('Fields are filled in; `sign_in` says if a QR code follows.')),
  setup_steps: v.array(v.string()),
  available: v.pipe(v.boolean(), v.description('There is an adapter for it.')),
  configured: v.boolean(),
  enabled: v.boolean(),
  has_token: v.pipe(v.boolean(), v.description('Every required secret is there.')),
  state: Status.entries.state,
  accounts: v.number(),
}
export const ChannelList = v.object({
  channels: v.array(v.object(Row)),
  total: v.number(),
  configured_count: v.number(),
})
const AccountView = v.object({
  account_id: v.string(),
  source: v.picklist(['file', 'api']),
  enabled: v.boolean(),
  has_token: v.boolean(),
  sign_in: v.pipe(v.boolean(), v.description('One signs in with a QR code.')),
  config: v.pipe(v.record(v.string(), v.unknown()), v.description('Secrets are `***`.')),
  status: Status,
})
export const ChannelView = v.object({
  ...Row,
  config: v.record(v.string(), v.unknown()),
  status: Status,
  account_list: v.array(AccountView),
  fields: v.array(Field),
  sign_in: v.pipe(v.boolean(), v.description('One signs in with a QR code.')),
  webhook_path: v.pipe(v.string(), v.description('Where the platform sends its requests, if it does.')),
  config_template: v.pipe(v.string(), v.description('The section of config.toml to start with.')),
})

export const Configuration = v.pipe(
  v.looseObject({
    token: v.optional(v.pipe(v.unknown(), v.description('The main secret of the channel; `***` keeps it.'))),
    agent_name: v.optional(v.pipe(v.unknown(), v.description('Agent that answers.'))),
    account_id: v.optional(AccountId),
    enabled: v.optional(v.boolean()),
    fields: v.optional(v.record(v.string(), v.unknown())),
  }),
  v.description('The fields of the channel, at the top or in `fields`. `null` takes one back to its default.'),
)
export const Configured = v.object({
  status: v.literal('configured'),
  channel: v.string(),
  account_id: v.string(),
  activated: v.boolean(),
  started_channels: v.array(v.string()),
  note: v.string(),
})
export const Removed = v.object({
  status: v.literal('removed'),
  channel: v.string(),
  account_id: v.string(),
  remaining_channels: v.number(),
  note: v.string(),
})
export const Switched = v.object({ status: v.picklist(['enabled', 'disabled']), channel: v.string() })
export const Reloaded = v.object({ status: v.literal('ok'), started: v.array(v.string()) })

export const TestRequest = v.optional(
  v.object({
    channel_id: v.optional(v.pipe(v.string(), v.maxLength(512), v.description('Another name of `chat_id`.'))),
    chat_id: v.optional(v.pipe(v.string(), v.maxLength(512), v.description('Sends a test message to this chat.'))),
    account_id: v.optional(AccountId),
  }),
  {},
)
export const TestResult = v.object({
  status: v.picklist(['ok', 'error']),
  message: v.string(),
  error: v.optional(v.string()),
  help: v.optional(v.pipe(v.string(), v.description('What to do about it.'))),
})
