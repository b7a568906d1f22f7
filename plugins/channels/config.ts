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
      'Seconds after which another daemon on the same database takes over an account whose daemon died.',
      30,
      5,
      3600,
    ),
    max_accounts: integer('Accounts of all channels together.', 200, 1, 10_000),
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
