import { findNearest, suggest } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { isObject, omitUndefined, Refusal } from 'svc/sdk'
import type { Logger, Tools } from 'svc/sdk'
import type { ToolCalls } from '../../../chat/contract.ts'
import { OutcomeUnknown } from '../../contract.ts'
import type { StepCall, StepResult } from '../../contract.ts'
import { isLabel } from '../../../sessions/contract.ts'
import { refuse } from './refuse.ts'
import type { BuiltInStep } from './built-in.ts'
import { sessionOf } from './session.ts'

export interface ToolStepDeps {
  readonly toolCalls: ToolCalls
  readonly tools: Pick<Tools, 'find' | 'list'>
  readonly daemon: Pick<Daemon, 'plugins'>
  readonly log: Pick<Logger, 'warn'>
}

/** Calls a tool as the agent may, as in one of its turns. The key of the attempt is the id of the call. */
export function toolStep(deps: ToolStepDeps): BuiltInStep {
  return {
    name: 'tool',
    check(definition) {
      if (typeof definition['tool'] !== 'string') throw refuse('with.tool', 'the name of a tool')
      const args = definition['args'] ?? {}
      if (!isObject(args)) throw refuse('with.args', 'an object')
      checkTool(deps, definition['tool'])
    },
    run: (call) => callTool(deps, call),
  }
}

/** Tools of MCP servers come and go with them. */
const TOOL_OF_SERVER = /^mcp_/

/** Throws `invalid_request` for a tool that does not exist, unless a plugin that is not loaded may have it. */
function checkTool({ tools, daemon, log }: ToolStepDeps, name: string): void {
  if (name.includes('{{') || TOOL_OF_SERVER.test(name) || tools.find(name)) return
  const names = tools.list().map((tool) => tool.name)
  const problem = `there is no tool "${name}"${suggest(findNearest(name, names))}`
  const missing = daemon.plugins().filter(({ state }) => state !== 'loaded')
  if (missing.length === 0) throw new Refusal('invalid_request', `with.tool: ${problem}`)
  log.warn(`a workflow is taken although ${problem}; not loaded: ${missing.map((plugin) => plugin.name).join(', ')}`)
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
