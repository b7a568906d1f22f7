import * as v from 'valibot'
import { fields } from 'svc/sdk'
import { isSecureUrl } from './address.ts'

const { integer } = fields

/** How the daemon proves itself to an agent. The secret is never in the file: a variable holds it, or the vault. */
const Auth = v.pipe(
  v.strictObject({
    type: v.pipe(
      v.picklist(['bearer', 'header']),
      v.description('bearer sends "Authorization: Bearer …", header sends the secret in a header of its own.'),
    ),
    header: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, 'the name of a header'),
        v.description('Name of that header; X-API-Key when unset.'),
      ),
    ),
    env: fields.variable(
      'Environment variable with the secret. Without it the vault has it, where the command `a2a credential` puts it.',
    ),
  }),
  v.description('How the daemon proves itself to this agent.'),
)
export type Auth = v.InferOutput<typeof Auth>

const Configured = v.strictObject({
  name: v.pipe(
    v.string(),
    v.regex(/^[\w][\w .-]{0,63}$/, 'a name of letters, digits, blanks, dots and hyphens, at most 64 characters'),
    v.description('What the agent is called here.'),
  ),
  url: v.pipe(
    v.string(),
    v.url(),
    v.check(isSecureUrl, 'expected an https address; http is for this machine only'),
    v.description('Address of the agent: that of its card, or the one above /.well-known/.'),
  ),
  auth: v.optional(Auth),
})
export type ConfiguredAgent = v.InferOutput<typeof Configured>

/** Keys of `[a2a]` for agents elsewhere. */
export const clientEntries = {
  external_agents: v.optional(
    v.pipe(
      v.array(Configured),
      v.maxLength(100),
      v.check((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two agents have the same name'),
      v.description('Agents elsewhere that are trusted because they stand here. They may be on this machine.'),
    ),
    [],
  ),
  max_hops: integer(
    'Daemons that a message may come through, or be sent through, so that agents do not ask each other in a circle.',
    5,
    1,
    100,
  ),
  max_external_agents: integer('Agents elsewhere that are known, those of the file included.', 200, 1, 10_000),
  max_pending_agents: integer('Discovered agents that may wait for a person to trust them.', 20, 1, 1_000),
  card_max_bytes: integer('Bytes of a card.', 262_144, 1_024, 4_194_304),
  card_timeout_ms: integer('Milliseconds for reading a card, with redirects.', 30_000, 100, 120_000),
  card_max_skills: integer('Skills of a card that are kept.', 50, 1, 1_000),
  card_max_text: integer('Characters of a description in a card that are kept.', 1_000, 50, 10_000),
  card_refresh_secs: integer('Seconds after which a card is read again before something is sent.', 3_600, 1, 604_800),
  send_wait_secs: integer('Seconds for which a request and a tool wait for the answer of an agent.', 60, 0, 600),
  request_timeout_ms: integer('Milliseconds for one request to an agent.', 30_000, 100, 600_000),
  answer_max_bytes: integer('Bytes of one answer of an agent.', 4_194_304, 1_024, 67_108_864),
  answer_max_chars: integer('Characters of a result that are kept.', 100_000, 1_000, 1_000_000),
  message_max_chars: integer('Characters of a message to an agent.', 100_000, 1, 1_000_000),
  poll_min_ms: integer('Milliseconds before a running task is asked for the first time.', 250, 10, 60_000),
  poll_max_ms: integer('Longest pause between two such requests, in milliseconds.', 15_000, 10, 600_000),
  follow_secs: integer('Seconds for which a task is followed; later only when somebody asks.', 3_600, 1, 604_800),
  sent_retention_days: integer('Days for which ended tasks are remembered.', 30, 1, 3_650),
} as const
const ClientSettings = v.object(clientEntries)
export type ClientSettings = v.InferOutput<typeof ClientSettings>
