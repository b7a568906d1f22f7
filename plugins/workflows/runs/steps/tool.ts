import { isObject, omitUndefined } from 'svc/sdk'
import type { ToolCalls } from '../../../chat/contract.ts'
import { OutcomeUnknown } from '../../contract.ts'
import type { StepCall, StepResult } from '../../contract.ts'
import { isLabel } from '../../../sessions/contract.ts'
import { refuse } from './refuse.ts'
import type { BuiltInStep } from './built-in.ts'
import { sessionOf } from './session.ts'

export interface ToolStepDeps {
  readonly toolCalls: ToolCalls
}

/** Calls a tool as the agent may, as in one of its turns. The key of the attempt is the id of the call. */
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

async function callTool({ toolCalls }: ToolStepDeps, call: StepCall): Promise<StepResult> {
  const { agentId, key, signal, state } = call
  const tool = String(call.with['tool'])
  if (agentId === undefined) throw new Error('it names no agent, whose rights the tool is called with')
  const result = await toolCalls.call({
    id: key,
    agentId,
    sessionId: sessionOf(call, agentId),
    entryPoint: 'workflow',
    tool,
    args: call.with['args'] ?? {},
    labels: call.labels.filter(isLabel),
    hops: call.hops,
    counted: isObject(state) && state['counted'] === true,
    signal,
  })
  if (result.outcome === 'unknown')
    throw new OutcomeUnknown(`${tool} was cut off: it may have had its effect, and is not called again`)
  if (result.outcome === 'waiting') {
    const { counted, untilMs } = result
    return { outcome: 'waiting', state: { counted }, ...omitUndefined({ untilMs }) }
  }
  if (result.failed) throw new Error(result.text)
  return { outcome: 'done', output: result.text }
}
