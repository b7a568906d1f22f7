import { defineRoute, nameOf, Refusal } from 'svc/sdk'
import type { AnyRoute, Principal, Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { ApprovalsConfig } from './config.ts'
import {
  Answer,
  ApprovalList,
  ApprovalParams,
  ApprovalView,
  Decided,
  GrantList,
  GrantParams,
  GrantQuery,
  ListQuery,
  NewApproval,
  Opened,
  Rejection,
  Revoked,
  toGrantView,
} from './schema.ts'
import type { ApprovalService } from './service.ts'

/** What the caller may approve. */
interface Caller {
  readonly holdsKey: boolean
  /** For the rest of a session too. */
  readonly standing: boolean
}

export function approvalRoutes(
  service: ApprovalService,
  agents: Agents,
  tools: Pick<Tools, 'find'>,
  config: Pick<ApprovalsConfig, 'session_scope'>,
): readonly AnyRoute[] {
  // An approval until the end of a session would outlive the removal of a device or the end of a sign-in.
  const callerOf = (principal: Principal): Caller => {
    const holdsKey = !('id' in principal)
    return { holdsKey, standing: config.session_scope && holdsKey }
  }

  return [
    listRoute(service, callerOf),
    grantsRoute(service),
    openRoute(service, agents, tools),
    readRoute(service, callerOf),
    approveRoute(service),
    rejectRoute(service),
    revokeRoute(service),
  ]
}

function listRoute(service: ApprovalService, callerOf: (principal: Principal) => Caller): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/approvals',
    summary: 'List approvals: those pending first, then those decided last',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: ListQuery,
    returns: ApprovalList,
    async handle({ query, principal }) {
      const found = await service.list(query.agent_id, query.limit === undefined ? undefined : Number(query.limit))
      const [asked, { toView }] = await Promise.all([service.escalations(), import('./views.ts')])
      const approvals = found
        .filter(({ state }) => query.status === undefined || state === query.status)
        .map((approval) => toView(approval, { ...callerOf(principal), asked }))
      return { approvals, total: approvals.length }
    },
  })
}

function openRoute(service: ApprovalService, agents: Agents, tools: Pick<Tools, 'find'>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/approvals',
    summary: 'Ask a person to approve an action of an agent',
    description:
      'The answer is for exactly this action: the tool and its payload. When the agent then calls that tool with ' +
      'those arguments, it is not asked again.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    body: NewApproval,
    returns: Opened,
    status: 201,
    errors: ['agent_not_found', 'rate_limit', 'payload_too_large'],
    idempotent: true,
    example: {
      body: {
        agent_id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
        action: 'shell_exec',
        description: 'Free some space',
        payload: { command: 'rm -r build' },
      },
    },
    async handle({ body, effectId }) {
      const { openRequest } = await import('./open-request.ts')
      const approval = await openRequest({ service, agents, tools }, body, effectId)
      return { id: approval.id, status: 'pending' as const, expires_at: approval.expiresAt }
    },
  })
}

function readRoute(service: ApprovalService, callerOf: (principal: Principal) => Caller): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/approvals/:id',
    summary: 'Read an approval',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: ApprovalParams,
    returns: ApprovalView,
    errors: ['approval_not_found'],
    async handle({ params, principal }) {
      const approval = await service.find(params.id)
      if (!approval) throw new Refusal('approval_not_found', `No approval ${params.id}`)
      const { toView } = await import('./views.ts')
      return toView(approval, { ...callerOf(principal), whole: true, asked: await service.escalations() })
    },
  })
}

function approveRoute(service: ApprovalService): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/approvals/:id/approve',
    summary: 'Approve exactly this action, once or for the rest of the session',
    description:
      'With the scope `session` further calls that `session_covers` describes pass without a question until the ' +
      'session ends, or until the standing approval is revoked. Only where `scopes` of the approval says so; ' +
      'never for a call that was flagged. Where the approval has a `form`, `content` is what was filled in; fields ' +
      'that are left out have their defaults, and an error names each field that is wrong.',
    auth: 'bearer',
    effect: 'conversation',
    effectOf: ({ body }) => (body.scope === 'session' ? 'lasting' : 'conversation'),
    cost: 5,
    params: ApprovalParams,
    body: Answer,
    returns: Decided,
    errors: ['approval_not_found', 'conflict'],
    async handle({ params, body, principal }) {
      const { id, state, decidedAt } = await service.approve(params.id, principal, body.scope, body.content)
      return { id, status: state, decided_at: decidedAt ?? null }
    },
  })
}

function grantsRoute(service: ApprovalService): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/approvals/grants',
    summary: 'List standing approvals, which hold until their session ends',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: GrantQuery,
    returns: GrantList,
    async handle({ query }) {
      const found = await service.grants(query.agent_id, query.session_id)
      return { grants: found.map(toGrantView), total: found.length }
    },
  })
}

function revokeRoute(service: ApprovalService): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/approvals/grants/:id',
    summary: 'Revoke a standing approval',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: GrantParams,
    returns: Revoked,
    errors: ['approval_not_found', 'conflict'],
    async handle({ params, principal }) {
      const { id, revokedAt } = await service.revoke(params.id, nameOf(principal))
      return { id, status: 'revoked' as const, revoked_at: revokedAt ?? '' }
    },
  })
}

function rejectRoute(service: ApprovalService): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/approvals/:id/reject',
    summary: 'Reject an action',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    params: ApprovalParams,
    body: Rejection,
    example: { body: { reason: 'Use the copy in /srv/backup instead.' } },
    returns: Decided,
    errors: ['approval_not_found', 'conflict'],
    async handle({ params, body, principal }) {
      const { id, state, decidedAt } = await service.reject(params.id, principal, body.reason)
      return { id, status: state, decided_at: decidedAt ?? null }
    },
  })
}
