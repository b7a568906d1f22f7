import * as v from 'valibot'
import { escapeControls } from '../log/text.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { clientArgs, command } from './command.ts'
import type { Command } from './command.ts'
import { ask, connect } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { print, printJson } from './output.ts'

export const Approval = v.looseObject({
  id: v.string(),
  agent_name: v.optional(v.string(), ''),
  tool_name: v.optional(v.string(), ''),
  action_summary: v.optional(v.string(), ''),
  risk_level: v.optional(v.string(), ''),
  status: v.string(),
  requested_at: v.optional(v.string(), ''),
  expires_at: v.optional(v.string(), ''),
})
export type Approval = v.InferOutput<typeof Approval>
export const ApprovalList = v.looseObject({ approvals: v.array(Approval) })
const Decided = v.looseObject({ id: v.string(), status: v.string() })

/** An approval by its id or by how its id begins. Throws a `Failure` that names those that wait. */
async function requireApproval(client: DaemonClient, wanted: string): Promise<Approval> {
  const { approvals } = await client.call('GET', '/api/approvals', ApprovalList)
  const exact = approvals.find(({ id }) => id === wanted)
  if (exact) return exact
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(wanted)) return client.call('GET', `/api/approvals/${wanted}`, Approval)
  const found = wanted === '' ? [] : approvals.filter(({ id }) => id.startsWith(wanted))
  if (found[0] && found.length === 1) return found[0]
  const waiting = approvals.filter(({ status }) => status === 'pending').map(({ id }) => id)
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${wanted}" is the beginning of ${found.length} ids`,
      `give more of it: ${found.map(({ id }) => id).join(', ')}`,
    )
  throw new Failure(
    exits.notFound,
    `there is no approval "${wanted}"`,
    waiting.length === 0 ? 'nothing waits for approval' : `pending: ${waiting.join(', ')}`,
  )
}

/** Answers a request. Throws what the daemon refused. */
export async function decide(client: DaemonClient, verb: 'approve' | 'reject', wanted: string) {
  const approval = await requireApproval(client, wanted)
  return { approval, answer: await client.call('POST', `/api/approvals/${approval.id}/${verb}`, Decided) }
}

export function answering(
  verb: 'approve' | 'reject',
  parts: { readonly description: string; readonly meaning: string },
): Command {
  return command({
    description: parts.description,
    args: {
      id: { type: 'positional', required: true, description: 'Id of the approval, or the beginning of it' },
      ...clientArgs,
    },
    examples: [[`svc approval ${verb} 0f6a9c1e`, parts.meaning]],
    async run(args) {
      const { approval, answer } = await ask(await connect(args), (client) => decide(client, verb, args.id))
      if (args.json) printJson(answer)
      else
        print(
          `${answer.status} ${approval.id}: ${approval.agent_name} ${answer.status === 'approved' ? 'may' : 'may not'} do this: ${escapeControls(approval.action_summary)}`,
        )
      return exits.ok
    },
  })
}
