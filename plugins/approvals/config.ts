import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

export const Policy = v.picklist(['always', 'risky', 'never'])
export type Policy = v.InferOutput<typeof Policy>
/** Limits of a single request. */
export const TimeoutSecs = v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(300))
const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))

const RiskName = v.picklist(['low', 'medium', 'high', 'critical'])
const names = (description: string) =>
  v.optional(
    v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(128))), v.maxLength(100), v.description(description)),
  )
/** Which requests a rule is about; all of them when it names nothing. */
const matching = {
  risks: v.optional(v.pipe(v.array(RiskName), v.description('Only requests with one of these risks.'))),
  tools: names('Only requests for these tools; `*` at the end matches the rest of a name.'),
  agents: names('Only requests of these agents, by id or by name.'),
}
const chatId = (description: string) =>
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(256), v.description(description))
const EscalationRule = v.strictObject({
  after_secs: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(3600),
    v.description('Seconds without an answer after which this chat is asked too.'),
  ),
  channel: chatId('A channel, such as telegram.'),
  to: chatId('The id of the chat on that platform.'),
  account: v.optional(chatId('The account of the channel; needed when it has several.')),
  thread: v.optional(chatId('A thread or topic of the chat.')),
  ...matching,
})
export type EscalationRule = v.InferOutput<typeof EscalationRule>
const TwoPeopleRule = v.strictObject(matching)
export type TwoPeopleRule = v.InferOutput<typeof TwoPeopleRule>

export const ApprovalsConfig = fileOnly(
  'says what is done without asking anybody',
  v.object({
    policy: v.optional(
      v.pipe(
        Policy,
        v.description('When an approval is needed: for every tool call, for calls that can do harm outside, never.'),
      ),
      'risky',
    ),
    agents: v.optional(
      v.pipe(
        v.record(v.string(), Policy),
        v.description(
          'Policies of single agents, by id or by name. An id stays with one agent; a name may be given to another.',
        ),
      ),
      {},
    ),
    /**
     * Decision: comparable systems ask about every change of a file too. A file in an agent's own workspace is confined
     * to it, and a question for each note teaches people to approve without reading; so only deleting is on the list.
     */
    require_approval: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(64))),
        v.description(
          'Tools that need an approval under `risky` whatever their risk; `*` at the end matches the rest of a name.',
        ),
      ),
      ['shell_exec', 'file_delete', 'skill_evolve_*'],
    ),
    timeout_secs: fields.integer(
      'Seconds a person has to decide; after that the request counts as rejected.',
      600,
      10,
      3600,
    ),
    agent_timeout_secs: v.optional(
      v.pipe(
        v.record(v.string(), v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(3600))),
        v.description('The same for single agents, by id or by name.'),
      ),
      {},
    ),
    session_scope: fields.flag('Let one answer approve the same kind of call until the session ends.', {}, true),
    grants_per_session: fields.integer('Standing approvals that one session may have.', 50, 1, 1000),
    pending_per_agent: fields.integer('Requests of one agent that may wait for a person at the same time.', 5, 1, 100),
    approved_for_secs: v.optional(
      count('Seconds an approval stays usable when its turn has ended and the same call is tried again.'),
      600,
    ),
    escalation: v.optional(
      v.pipe(
        v.array(EscalationRule),
        v.maxLength(20),
        v.description('Who else is asked when nobody answers. Only operators of the account can answer there.'),
      ),
      [],
    ),
    two_people: v.optional(
      v.pipe(
        v.array(TwoPeopleRule),
        v.maxLength(20),
        v.description('Requests that two different people have to approve. One of them alone can reject.'),
      ),
      [],
    ),
    payload_bytes: v.optional(
      count('Largest call that can be shown to a person, in bytes of JSON; a larger one is refused.'),
      1_048_576,
    ),
    keep_days: v.optional(count('Days for which decided requests are kept.'), 90),
  }),
)
export type ApprovalsConfig = v.InferOutput<typeof ApprovalsConfig>
