import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'

export const Policy = v.picklist(['always', 'risky', 'never'])
export type Policy = v.InferOutput<typeof Policy>
/** What a caller may ask for with one request. */
export const TimeoutSecs = v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(300))
const count = v.pipe(v.number(), v.integer(), v.minValue(1))

export const ApprovalsConfig = fileOnly(
  'says what is done without asking anybody',
  v.object({
    /** `always`: before every call of a tool. `risky`: before what can do harm outside. `never`: nobody is asked. */
    policy: v.optional(Policy, 'risky'),
    /**
     * Other policies for single agents, by id or by name. An id stays with one agent; a name may be given to another.
     */
    agents: v.optional(v.record(v.string(), Policy), {}),
    /**
     * Tools that `risky` asks about whatever their risk; `*` at the end stands for the rest of a name. Decision:
     * references ask for every change of a file too. A file of an agent's own workspace is confined to it, and a
     * question for each note it takes teaches people to say yes unread; so only deleting is on the list.
     */
    require_approval: v.optional(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(64))), [
      'shell_exec',
      'file_delete',
      'skill_evolve_*',
    ]),
    /** Seconds a person has; then it counts as rejected. Long enough to come back from a cup of coffee. */
    timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(3600)), 600),
    /**
     * Whether one answer may stand for the same kind of call until the session ends. Without it every call is asked
     * about by itself.
     */
    session_scope: v.optional(v.boolean(), true),
    /** Standing approvals one session can have. */
    grants_per_session: v.optional(v.pipe(count, v.maxValue(1000)), 50),
    pending_per_agent: v.optional(v.pipe(count, v.maxValue(100)), 5),
    /**
     * Seconds an approval can be used for after it was given, when the turn that asked is gone and the same action is
     * tried again.
     */
    approved_for_secs: v.optional(count, 600),
    /** Of one action, as JSON. What is larger cannot be shown to anybody, so it is refused. */
    payload_bytes: v.optional(count, 1_048_576),
    keep_days: v.optional(count, 90),
  }),
)
export type ApprovalsConfig = v.InferOutput<typeof ApprovalsConfig>
