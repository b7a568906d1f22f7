import { isObject, Refusal } from 'svc/sdk'
import type { Hooks, Tools } from 'svc/sdk'
import type { Agents } from '../../../agents/contract.ts'
import { ToolCallStarting } from '../../../chat/contract.ts'
import { OutcomeUnknown } from '../../contract.ts'
import type { StepCall, StepResult } from '../../contract.ts'
import { refuse } from './refuse.ts'
import type { BuiltInStep } from './built-in.ts'

export interface ToolStepDeps {
  readonly agents: Pick<Agents, 'require' | 'mayUse'>
  readonly tools: Pick<Tools, 'call' | 'find'>
  readonly hooks: Pick<Hooks, 'check'>
}
/** How long a worker waits for a person before the run waits without it. */
const PATIENCE_MS = 250

/**
 * Calls a tool as an agent may: with its grants, its labels and its approvals. After a crash only a tool that reads is
 * called again; of another one nobody knows whether it has acted.
 */
export function toolStep(deps: ToolStepDeps): BuiltInStep {
  return {
    name: 'tool',
    check(definition) {
      if (typeof definition['tool'] !== 'string') throw refuse('with.tool', 'the name of a tool')
      const args = definition['args'] ?? {}
      if (!isObject(args)) throw refuse('with.args', 'an object')
    },
    run: (call) => callTool(deps, call),
  }
}

async function callTool({ agents, tools, hooks }: ToolStepDeps, call: StepCall): Promise<StepResult> {
  const { agentId, key, signal, labels } = call
  const name = String(call.with['tool'])
  const args = call.with['args'] ?? {}
  const tool = tools.find(name)
  if (!tool) throw new Error(`there is no tool "${name}"`)
  if (agentId === undefined) throw new Error('it names no agent, whose rights the tool is called with')
  if (call.wasCutOff && tool.risk !== 'read')
    throw new OutcomeUnknown(`${name} was cut off: it may have had its effect, and is not called again`)
  const agent = await agents.require(agentId)
  if (!agents.mayUse(agent, tool)) throw new Error(`${agent.name} may not use the tool ${name}`)
  const withheld = (tool.refuses ?? []).filter((label) => labels.includes(label))
  let approvedBy: string | undefined
  const patience = AbortSignal.timeout(PATIENCE_MS)
  try {
    await hooks.check(ToolCallStarting, {
      agent,
      turnId: key,
      sessionId: '',
      callId: key,
      tool: name,
      args,
      risk: tool.risk,
      labels,
      signal: AbortSignal.any([signal, patience]),
      approve: (by) => {
        approvedBy = by
      },
      ...(withheld.length > 0 && { refusal: `${name} refuses ${withheld.join(' and ')}, and its arguments carry it.` }),
    })
  } catch (error) {
    signal.throwIfAborted()
    if (patience.aborted || isAskAgain(error)) return { outcome: 'waiting', state: null }
    throw error
  }
  if (withheld.length > 0 && approvedBy === undefined)
    throw new Error(`${name} refuses ${withheld.join(' and ')}, which its arguments carry`)
  const context = { agentId: agent.id, agentName: agent.name, sessionId: '', turnId: key, callId: key, labels, signal }
  const { text, failed } = await tools.call(name, args, context)
  if (failed) throw new Error(text)
  return { outcome: 'done', output: text }
}

const isAskAgain = (error: unknown): boolean => error instanceof Refusal && error.details['ask_again'] === true
