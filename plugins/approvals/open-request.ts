import type * as v from 'valibot'
import type { Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { summarise, visible } from './action.ts'
import type { Approval } from './contract.ts'
import { riskOf } from './risk.ts'
import type { NewApproval } from './schema.ts'
import type { ApprovalService } from './service.ts'

/** Asks a person about an action that was described over the API. */
export async function openRequest(
  deps: {
    readonly service: Pick<ApprovalService, 'request'>
    readonly agents: Pick<Agents, 'require'>
    readonly tools: Pick<Tools, 'find'>
  },
  body: v.InferOutput<typeof NewApproval>,
  id?: string,
): Promise<Approval> {
  const agent = await deps.agents.require(body.agent_id)
  const tool = body.tool_name ?? body.action ?? ''
  const known = deps.tools.find(tool)
  const assessed = known?.assess?.(body.payload)
  return deps.service.request({
    ...(id === undefined ? {} : { id }),
    agentId: agent.id,
    agentName: agent.name,
    sessionId: body.session_id,
    tool,
    action: body.action ?? tool,
    description: body.description,
    summary: body.action_summary === undefined ? summarise(tool, body.payload) : visible(body.action_summary),
    payload: body.payload,
    risk: assessed?.harm ?? riskOf(tool, known?.risk),
    intent: assessed && visible(assessed.intent),
    timeoutSecs: body.timeout_secs,
    form: body.form,
  })
}
