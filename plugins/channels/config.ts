import * as v from 'valibot'
import { fields, fileOnly, isObject } from 'svc/sdk'

const { integer } = fields

/** `[plugins.channels]`. */
export const Settings = fileOnly(
  'says how much other systems may make the daemon do',
  v.object({
    open_timeout_secs: integer('Seconds a connection to a platform may take to open.', 30, 1, 600),
    close_timeout_ms: integer('Milliseconds an adapter may take to end a connection.', 1500, 100, 60_000),
    reconnect_min_ms: integer('Longest first pause before a lost connection is opened again.', 1000, 10, 60_000),
    reconnect_max_ms: integer('Longest pause between two attempts to connect.', 60_000, 1000, 3_600_000),
    stable_ms: integer(
      'Milliseconds after which a connection counts as stable: pauses begin anew.',
      60_000,
      0,
      3_600_000,
    ),
    lease_secs: integer(
      'Seconds after which another daemon on the same database takes over accounts and messages of one that died.',
      30,
      5,
      3600,
    ),
    max_accounts: integer('Accounts of all channels together.', 200, 1, 10_000),
    default_agent: v.optional(
      v.pipe(v.string(), v.description('Agent that answers where neither a binding nor the account names one.')),
    ),
    max_bindings: integer('Rules that say which agent answers whom.', 1_000, 1, 100_000),
    message_chars: integer('Characters of a message; a longer one is refused.', 32_000, 1, 100_000),
    max_attachments: integer('Files of one message that are read.', 10, 0, 100),
    attachment_max_bytes: integer('Largest file of a message in bytes.', 20_971_520, 1, 104_857_600),
    dedupe_hours: integer('Hours for which the ids of messages are kept: a redelivery is dropped.', 72, 1, 8_760),
    max_attempts: integer(
      'Attempts to answer a message, and to send one that may have arrived or fails for no known reason.',
      10,
      1,
      100,
    ),
    resend_uncertain: fields.flag(
      'Whether a message that may have arrived is sent again, where the platform shows it twice then. Else it is a ' +
        'dead letter.',
      {},
      true,
    ),
    give_up_hours: integer(
      'Hours for which a message waits until it can be answered, or until the platform takes it.',
      24,
      1,
      720,
    ),
    format_chars: integer(
      'Characters up to which an answer is formatted; a longer one is shown as it was written.',
      16_000,
      1_000,
      64_000,
    ),
    max_rejections: integer(
      'Attempts that fail for one message while the platform takes others, before it is a dead letter.',
      8,
      2,
      100,
    ),
    max_failed_chats: integer(
      'Chats in which a platform fails, without a success in between, before the account pauses as a whole.',
      3,
      1,
      1_000,
    ),
    max_conversations: integer('Conversations that are answered side by side.', 256, 1, 10_000),
    send_retry_min_ms: integer(
      'Longest first pause before a message is sent again, in milliseconds.',
      1_000,
      1,
      60_000,
    ),
    send_retry_max_ms: integer(
      'Longest pause between two attempts to send, in milliseconds, unless the platform asks for a longer one.',
      300_000,
      1,
      3_600_000,
    ),
    max_concurrent_sends: integer('Messages of an account that are sent side by side.', 16, 1, 256),
    retention_days: integer('Days for which sent messages are kept; dead letters four times as long.', 7, 1, 3_650),
    notices_per_minute: integer('Notices to people who are not allowed, by account.', 20, 1, 1_000),
    pairing_code_secs: integer('Seconds for which a pairing code can be used.', 600, 30, 86_400),
    pairing_guesses_per_hour: integer('Wrong pairing codes of everybody together, by account.', 30, 1, 1_000),
    webhook_max_bytes: integer('Largest request of a platform in bytes.', 1_048_576, 1024, 33_554_432),
    webhook_rate_per_minute: integer(
      'Requests that platforms may send to one account in a minute.',
      6000,
      1,
      1_000_000,
    ),
  }),
)
export type Settings = v.InferOutput<typeof Settings>

const isTables = (value: unknown): boolean => isObject(value) || (Array.isArray(value) && value.every(isObject))

/** `[channels.<name>]`: a table for one account, or `[[channels.<name>]]` with an `account_id` each for several. */
export const Section = fileOnly(
  'says who may talk to agents, and where their tokens are sent',
  v.optional(
    v.pipe(
      v.record(
        v.string(),
        v.pipe(
          v.unknown(),
          v.check(isTables, 'expected a table, or several with an account_id each'),
          v.description('One chat channel; POST /api/channels/{name}/configure does the same.'),
        ),
      ),
      v.description('Chat channels, one section each: [channels.<name>].'),
    ),
    {},
  ),
)
