import { defineRoute, nameOf, Refusal } from 'svc/sdk'
import type { AnyRoute, Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { summarise, visible } from './action.ts'
import { riskOf } from './risk.ts'
import {
  ApprovalList,
  ApprovalParams,
  ApprovalView,
  Decided,
  ListQuery,
  NewApproval,
  Opened,
  toView,
} from './schema.ts'
import type { Desk } from './service.ts'

export function approvalRoutes(desk: Desk, agents: Agents, tools: Pick<Tools, 'find'>): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/approvals',
    summary: 'List approvals: those pending first, then those decided last',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: ListQuery,
    returns: ApprovalList,
    async handle({ query }) {
      const found = await desk.list(query.agent_id, query.limit === undefined ? undefined : Number(query.limit))
      const approvals = found
        .filter(({ state }) => query.status === undefined || state === query.status)
        .map((approval) => toView(approval))
      return { approvals, total: approvals.length }
    },
  })

  const open = defineRoute({
    method: 'POST',
    path: '/api/approvals',
    summary: 'Ask a person to approve an action of an agent',
    description:
      'The answer is for exactly this action: the tool and its payload. When the agent then calls that tool with those arguments, it is not asked again.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    body: NewApproval,
    returns: Opened,
    status: 201,
    errors: ['agent_not_found', 'rate_limit', 'payload_too_large'],
    example: {
      body: {
        agent_id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
        action: 'shell_exec',
        description: 'Free some space',
        payload: { command: 'rm -r build' },
      },
    },
    async handle({ body }) {
      const agent = await agents.require(body.agent_id)
      const tool = body.tool_name ?? body.action ?? ''
      const approval = await desk.request({
        agentId: agent.id,
        agentName: agent.name,
        sessionId: body.session_id,
        tool,
        action: body.action ?? tool,
        description: body.description,
        summary: body.action_summary === undefined ? summarise(tool, body.payload) : visible(body.action_summary),
        payload: body.payload,
        risk: riskOf(tool, tools.find(tool)?.risk),
        timeoutSecs: body.timeout_secs,
      })
      return { id: approval.id, status: 'pending' as const, expires_at: approval.expiresAt }
    },
  })

  const read = defineRoute({
    method: 'GET',
    path: '/api/approvals/:id',
    summary: 'Read an approval',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: ApprovalParams,
    returns: ApprovalView,
    errors: ['approval_not_found'],
    async handle({ params }) {
      const approval = await desk.find(params.id)
      if (!approval) throw new Refusal('approval_not_found', `No approval ${params.id}`)
      return toView(approval, true)
    },
  })

  const approve = defineRoute({
    method: 'POST',
    path: '/api/approvals/:id/approve',
    summary: 'Approve exactly this action, once',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: ApprovalParams,
    returns: Decided,
    errors: ['approval_not_found', 'conflict'],
    async handle({ params, principal }) {
      const { id, state, decidedAt } = await desk.approve(params.id, nameOf(principal))
      return { id, status: state, decided_at: decidedAt ?? null }
    },
  })
  const reject = defineRoute({
    method: 'POST',
    path: '/api/approvals/:id/reject',
    summary: 'Reject an action',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: ApprovalParams,
    returns: Decided,
    errors: ['approval_not_found', 'conflict'],
    async handle({ params, principal }) {
      const { id, state, decidedAt } = await desk.reject(params.id, nameOf(principal))
      return { id, status: state, decided_at: decidedAt ?? null }
    },
  })

  return [list, open, read, approve, reject]
}
