import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

export const Policy = v.picklist(['always', 'risky', 'never'])
export type Policy = v.InferOutput<typeof Policy>
/** Limits of a single request. */
export const TimeoutSecs = v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(300))
const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))

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
    session_scope: fields.flag('Let one answer approve the same kind of call until the session ends.', {}, true),
    grants_per_session: fields.integer('Standing approvals that one session may have.', 50, 1, 1000),
    pending_per_agent: fields.integer('Requests of one agent that may wait for a person at the same time.', 5, 1, 100),
    approved_for_secs: v.optional(
      count('Seconds an approval stays usable when its turn has ended and the same call is tried again.'),
      600,
    ),
    payload_bytes: v.optional(
      count('Largest call that can be shown to a person, in bytes of JSON; a larger one is refused.'),
      1_048_576,
    ),
    keep_days: v.optional(count('Days for which decided requests are kept.'), 90),
  }),
)
export type ApprovalsConfig = v.InferOutput<typeof ApprovalsConfig>
