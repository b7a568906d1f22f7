import {
  callDaemon,
  clientArgs,
  defineCommand,
  connect,
  exits,
  print,
  printJson,
  renderDuration,
  renderTable,
} from 'svc/cli'
import type { Approval } from './approval.ts'
import { ApprovalList } from './approval.ts'

export default defineCommand({
  description: 'List the approvals: pending ones first, then those answered last.',
  args: { ...clientArgs, pending: { type: 'boolean', description: 'Only pending approvals' } },
  examples: [
    ['svc approval list --pending', 'the pending approvals'],
    ['svc approval list --json | jq \'.approvals[] | select(.status == "pending") | .id\'', 'ids for a script'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/approvals${args.pending ? '?status=pending' : ''}`, ApprovalList),
    )
    if (args.json) printJson(answer)
    else if (answer.approvals.length === 0)
      print(args.pending ? 'Nothing waits for approval.' : 'Nothing has needed approval.')
    else
      print(
        renderTable(
          ['STATUS', 'RISK', 'TIME LEFT', 'AGENT', 'ID', 'WHAT'],
          answer.approvals.map((each) => [
            each.status,
            each.risk_level,
            left(each),
            each.agent_name,
            each.id,
            each.action_summary,
          ]),
        ),
      )
    return exits.ok
  },
})

function left({ status, expires_at: expiresAt }: Approval): string {
  const secs = (Date.parse(expiresAt) - Date.now()) / 1000
  return status === 'pending' && Number.isFinite(secs) ? renderDuration(Math.max(0, secs)) : ''
}
