import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute, Logger, PluginDatabase } from 'svc/sdk'
import type { Journal } from '../../journal/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Agents } from '../../agents/contract.ts'
import { Label, SessionParams } from '../schema.ts'
import type { Session } from '../contract.ts'
import type { SessionService } from '../service.ts'

const Branch = v.optional(
  v.object({
    message: v.optional(
      v.union(
        [v.pipe(v.string(), v.minLength(1), v.maxLength(100)), v.pipe(v.number(), v.integer(), v.minValue(1))],
        'Expected the id of a message, or its number, counted from 1',
      ),
    ),
    label: v.optional(Label),
  }),
  {},
)
const Branched = v.object({
  session_id: v.string(),
  branched_from: v.string(),
  label: v.nullable(v.string()),
  message_count: v.number(),
})

export interface BranchRouteDeps {
  readonly db: PluginDatabase
  readonly log: Pick<Logger, 'error'>
  readonly sessions: SessionService
  readonly agents: Agents
  readonly audit: Audit
  /** Without it no message is being answered. */
  readonly journal: () => Journal | undefined
  readonly maxMessages: number
}

export const branchRoute = (deps: BranchRouteDeps): AnyRoute =>
  defineRoute({
    method: 'POST',
    path: '/api/sessions/:id/branch',
    summary: 'Copy a conversation up to one message into a new, active session',
    description:
      '`message` is the id, or the number from 1 on, of the last message to copy; by default the last one that is ' +
      'complete. Results of its tools come with it, messages that failed do not. Without a label, it is the title ' +
      'with “(branch)”.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 20,
    params: SessionParams,
    body: Branch,
    returns: Branched,
    status: 201,
    errors: ['session_not_found', 'message_not_found', 'agent_not_found', 'conflict'],
    idempotent: true,
    // The label may begin with what somebody wrote.
    keepsAnswer: false,
    async recall(id, { params }) {
      const branch = await deps.sessions.find(id)
      return branch && toAnswer(branch, params.id)
    },
    async handle({ params, body, effectId }) {
      const [{ branchSession }, { BranchStore }] = await Promise.all([import('./branch.ts'), import('./store.ts')])
      const { db, log, sessions } = deps
      const source = await sessions.require(params.id)
      const branch = await branchSession(
        { ...deps, store: new BranchStore(db, log), commit: (statements) => db.batch(statements), now: Date.now },
        source,
        { ...body, id: effectId },
      )
      return toAnswer(branch, source.id)
    },
  })

const toAnswer = ({ id, label, messageCount }: Session, from: string) => ({
  session_id: id,
  branched_from: from,
  label,
  message_count: messageCount,
})
