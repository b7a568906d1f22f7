import * as v from 'valibot'
import { MASK } from 'svc/internal'
import { fields, line, secret, settable } from 'svc/sdk'
import { eventNames, toEventName } from './events.ts'

export const Settings = settable(
  'deliveries go where the owner sends them over the API',
  v.object({
    max_webhooks: fields.integer('Subscriptions of each kind.', 100, 1, 10_000),
    max_attempts: fields.integer('Attempts after which a delivery is a dead letter.', 10, 1, 100),
    back_off_min_ms: fields.integer(
      'Milliseconds between the first two attempts; each further pause is twice as long.',
      1_000,
      1,
      3_600_000,
    ),
    back_off_max_ms: fields.integer('Longest pause between two attempts, in milliseconds.', 300_000, 1, 86_400_000),
    timeout_ms: fields.integer('Milliseconds one attempt may take.', 10_000, 100, 120_000),
    max_concurrent: fields.integer(
      'Concurrent deliveries; a target gets one at a time, which keeps their order.',
      8,
      1,
      256,
    ),
    max_waiting: fields.integer(
      'Deliveries that may wait for one target; a further one is a dead letter at once.',
      10_000,
      1,
      1_000_000,
    ),
    retention_days: fields.integer('Days for which delivered and dead deliveries are kept; 0 keeps them.', 7, 0, 3_650),
    poll_ms: fields.integer('Milliseconds between two searches for deliveries that are due.', 1_000, 10, 60_000),
    heartbeat_secs: fields.integer(
      'Seconds between two heartbeats, at which wakes with mode `next_heartbeat` are delivered.',
      30,
      1,
      86_400,
    ),
  }),
)
export type Settings = v.InferOutput<typeof Settings>

const anotherWayIn = 'is a way in beside the API key, which outlives a new key'
/** `[webhook_triggers]` at the top of the file. */
export const Triggers = fields.table(
  'What other programs may ask for at `/api/hooks`, with a token of their own.',
  fields.inFile(anotherWayIn),
  {
    enabled: fields.flag('Take such requests.'),
    token: v.optional(
      secret(
        v.pipe(
          v.string(),
          v.description('The token, at least 32 characters; the variable that token_env names does the same.'),
        ),
      ),
    ),
    token_env: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of a variable'),
        v.description('Environment variable that holds the token.'),
      ),
      'SVC_WEBHOOK_TOKEN',
    ),
    max_payload_bytes: fields.integer('Largest request.', 65_536, 256, 10_485_760),
    rate_limit_per_minute: fields.integer('Requests one address may send in a minute.', 30, 1, 1_000_000),
    require_signature: fields.flag(
      'Take only requests that are signed, with an id and a time, so that a recorded one cannot be sent again.',
    ),
    deliver_to: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(600))),
        v.maxLength(1_000),
        v.description(
          'Chats that answers may be delivered to, as channel:recipient, such as "telegram:4711". ' +
            '`*` stands for any characters. Empty: none.',
        ),
      ),
      ['*'],
    ),
  },
)
export type Triggers = v.InferOutput<typeof Triggers>

const EventName = v.pipe(
  v.string(),
  v.maxLength(64),
  v.check((name) => toEventName(name) !== undefined, `must be one of ${eventNames.join(', ')}`),
)
const Events = v.pipe(v.array(EventName), v.minLength(1, 'must name at least one event'), v.maxLength(64))
const Url = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(2_048),
  v.check((text) => /^https?:\/\//i.test(text) && URL.canParse(text), 'must be an http or https address'),
)
const Secret = v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(256))
const Name = line(128)

export const NewWebhook = v.object({
  name: Name,
  url: Url,
  events: Events,
  secret: v.optional(v.nullable(secret(Secret))),
  enabled: v.optional(v.boolean(), true),
})
/** An empty secret removes it; left out, or `***` as it is shown, it stays. */
export const WebhookChange = v.object({
  name: v.optional(Name),
  url: v.optional(Url),
  events: v.optional(Events),
  secret: v.optional(secret(v.nullable(v.pipe(v.string(), v.maxLength(256))))),
  enabled: v.optional(v.boolean()),
})
/** The interface names one `event_type`, compatible services a list of `events`. */
export const NewEventWebhook = v.pipe(
  v.object({
    event_type: v.optional(EventName),
    events: v.optional(Events),
    url: Url,
    secret: v.optional(v.nullable(secret(Secret))),
    enabled: v.optional(v.boolean(), true),
  }),
  v.check(
    ({ event_type, events }) => event_type !== undefined || events !== undefined,
    `event_type: one of ${eventNames.join(', ')} is needed`,
  ),
)
export const EventWebhookChange = v.object({
  event_type: v.optional(EventName),
  events: v.optional(Events),
  url: v.optional(Url),
  secret: v.optional(secret(v.nullable(v.pipe(v.string(), v.maxLength(256))))),
  enabled: v.optional(v.boolean()),
})

export const WebhookParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid webhook ID')) })
export const DeliveryParams = v.object({
  ...WebhookParams.entries,
  delivery_id: v.pipe(v.string(), v.regex(/^evt_[0-9a-f]{32}$/, 'Invalid delivery ID')),
})
export const deliveryStates = ['pending', 'delivered', 'dead'] as const
export const DeliveryQuery = v.object({
  state: v.optional(v.picklist(deliveryStates)),
  limit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(?:[1-9]\d?|[1-4]\d\d|500)$/, 'must be a whole number from 1 to 500'),
      v.transform(Number),
    ),
    '50',
  ),
})

/** A secret is shown as `***`, never as it is. */
export const Webhook = v.object({
  id: v.string(),
  name: v.string(),
  url: v.string(),
  secret: v.nullable(v.literal(MASK)),
  events: v.array(v.string()),
  enabled: v.boolean(),
  created_at: v.string(),
  updated_at: v.string(),
})
export const EventWebhook = v.object({
  id: v.string(),
  event_type: v.string(),
  events: v.array(v.string()),
  url: v.string(),
  secret: v.nullable(v.literal(MASK)),
  enabled: v.boolean(),
  created_at: v.string(),
  updated_at: v.string(),
})
const count = v.pipe(v.number(), v.integer())
export const ListQuery = v.object({
  counts: v.optional(
    v.pipe(v.picklist(['true', 'false']), v.description('Whether each says how many deliveries are dead and wait.')),
    'false',
  ),
})
/** Of one of a list. */
const counts = { dead: v.optional(count), pending: v.optional(count) }
export const WebhookList = v.object({
  webhooks: v.array(v.object({ ...Webhook.entries, ...counts })),
  total: count,
})
export const EventWebhookList = v.array(v.object({ ...EventWebhook.entries, ...counts }))
export const Delivery = v.object({
  id: v.string(),
  webhook_id: v.string(),
  event: v.string(),
  timestamp: v.string(),
  state: v.picklist(deliveryStates),
  attempts: count,
  next_attempt_at: v.nullable(v.string()),
  response_status: v.nullable(count),
  error: v.nullable(v.string()),
  settled_at: v.nullable(v.string()),
})
export const DeliveryList = v.object({ deliveries: v.array(Delivery), total: count, dead: count, pending: count })
export const TestResult = v.object({
  status: v.picklist(['sent', 'error']),
  webhook_id: v.string(),
  response_status: v.optional(count),
  error: v.optional(v.string()),
})
/** The body of a delivery, for the OpenAPI document. Which fields `data` has depends on the event. */
export const Payload = v.object({
  id: v.string(),
  event: v.string(),
  timestamp: v.string(),
  webhook_id: v.string(),
  data: v.looseObject({
    audit_id: v.number(),
    details: v.string(),
    agent_id: v.optional(v.string()),
    agent_name: v.optional(v.string()),
    turn_id: v.optional(v.string()),
    session_id: v.optional(v.string()),
    entry_point: v.optional(v.string()),
    status: v.optional(v.string()),
    reason: v.optional(v.string()),
    tool: v.optional(v.string()),
    failed: v.optional(v.boolean()),
    approval_id: v.optional(v.string()),
    response: v.optional(v.string()),
    error: v.optional(v.string()),
    iterations: v.optional(v.number()),
    usage: v.optional(v.object({ input_tokens: v.number(), output_tokens: v.number() })),
    cost_usd: v.optional(v.nullable(v.number())),
    received_at: v.optional(v.string()),
  }),
})

const row = { id: v.string(), created_at: v.string() }
const number = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))
export const TargetRow = v.object({
  ...row,
  kind: v.picklist(['outbound', 'event']),
  name: v.string(),
  url: v.string(),
  events: v.pipe(v.string(), v.parseJson(), v.array(v.string())),
  enabled: v.pipe(
    number,
    v.transform((it) => it === 1),
  ),
  has_secret: v.pipe(
    number,
    v.transform((it) => it === 1),
  ),
  position: number,
  updated_at: v.string(),
})
export type Target = v.InferOutput<typeof TargetRow>
export const DeliveryRow = v.object({
  target_id: v.string(),
  event_id: v.string(),
  seq: number,
  event: v.string(),
  occurred_at: v.string(),
  data: v.string(),
  state: v.picklist(deliveryStates),
  attempts: number,
  due_at: v.string(),
  lease_until: v.nullable(v.string()),
  status: v.nullable(number),
  error: v.nullable(v.string()),
  settled_at: v.nullable(v.string()),
})
export type DeliveryRow = v.InferOutput<typeof DeliveryRow>
export const WakeRow = v.object({
  ...row,
  agent: v.nullable(v.string()),
  mode: v.picklist(['now', 'next_heartbeat']),
  text: v.string(),
  attempts: number,
})
export type WakeRow = v.InferOutput<typeof WakeRow>
