import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { ToolDescription } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Approvals } from '../../approvals/contract.ts'
import type { Inference, ResolvedModel } from '../../providers/contract.ts'
import type { Step, Workflow } from '../definition.ts'
import type { StepTypes } from '../steps/registry.ts'
import { findPlaceholders, textsIn } from '../templates/template.ts'
import type { DryRunStep, DryRunView } from './schema.ts'

export interface DryRunDeps {
  readonly agents: Pick<Agents, 'find' | 'findByName' | 'mayUse'>
  readonly inference: Pick<Inference, 'resolve'> | undefined
  readonly steps: Pick<StepTypes, 'find' | 'explainMissing'>
  readonly tools: readonly ToolDescription[]
  readonly approvals: Pick<Approvals, 'asks'> | undefined
  /** A workflow by its id or name. */
  readonly findWorkflow: (text: string) => Promise<Workflow | undefined>
}

const CHARS_PER_TOKEN = 4
const USD_PER_TOKENS = 1_000_000
/** Workflows within workflows that are followed; what a workflow that runs itself costs is unknown. */
const MAX_DEPTH = 5

/** What a run would do, as far as that is known before. Calls no model and no tool. */
export async function rehearse(workflow: Workflow, input: string, deps: DryRunDeps, depth = 0): Promise<DryRunView> {
  const steps: DryRunStep[] = []
  for (const step of workflow.steps) steps.push(await rehearseStep(workflow, step, input, deps, depth))
  const costs = steps
    .filter(({ type, most_calls: calls }) => (type === 'agent' || type === 'workflow') && calls > 0)
    .map(({ estimated_cost_usd: cost }) => cost)
  const known = costs.filter((cost) => cost !== null)
  return {
    workflow_id: workflow.id,
    name: workflow.name,
    steps,
    variables: workflow.steps.flatMap(({ outputVar }) => outputVar ?? []),
    estimated_cost_usd: known.length === costs.length ? known.reduce((sum, cost) => sum + cost, 0) : null,
    needs_approval: steps.filter(({ needs_approval: needs }) => needs).map(({ name }) => name),
    problems: steps.flatMap(({ name, problem }) => (problem === null ? [] : [`step "${name}": ${problem}`])),
  }
}

async function rehearseStep(
  workflow: Workflow,
  step: Step,
  input: string,
  deps: DryRunDeps,
  depth: number,
): Promise<DryRunStep> {
  const known = {
    name: step.name,
    type: step.type,
    mode: step.mode,
    agent_id: null,
    agent_name: null,
    model: null,
    variables: variablesOf(step),
    output_var: step.outputVar ?? null,
    most_calls: 0,
    estimated_cost_usd: null,
    text: `${step.type} ${step.mode}`,
    needs_approval: false,
    may_ask_for: [],
    problem: null,
  }
  if (step.mode === 'collect') return { ...known, text: 'joins the outputs of the steps before it' }
  if (step.type === 'tool') return { ...known, ...(await describeTool(step, deps)) }
  if (step.type === 'workflow')
    return { ...known, ...describeOther(step, deps), ...(await describeWorkflow(step, input, deps, depth)) }
  if (step.type !== 'agent') return { ...known, ...describeOther(step, deps) }
  const agent = await findAgent(step, deps)
  if (!agent) return { ...known, most_calls: 1, problem: 'its agent does not exist' }
  const asked = { ...known, agent_id: agent.id, agent_name: agent.name, text: `asks the agent "${agent.name}"` }
  const { resolved, problem } = await resolveModel(agent, deps)
  const calls = step.mode === 'loop' ? step.maxIterations : 1
  return {
    ...asked,
    model: resolved ? `${resolved.provider}/${resolved.model}` : null,
    most_calls: mostCalls(step),
    estimated_cost_usd: resolved ? costOf(resolved, agent, step, input, calls) : null,
    may_ask_for: deps.tools.filter((tool) => mayAsk(agent, tool, deps)).map(nameOf),
    problem,
  }
}
const nameOf = ({ name }: ToolDescription): string => name

const mayAsk = (agent: Agent, tool: ToolDescription, { agents, approvals }: DryRunDeps): boolean =>
  agents.mayUse(agent, tool) && (approvals?.asks(agent, tool) ?? false)
const mostCalls = (step: Step): number =>
  (step.mode === 'loop' ? step.maxIterations : 1) * (step.errorMode === 'retry' ? step.maxRetries + 1 : 1)

/** Whether a person is asked is up to the policy of the agent; a name with placeholders is not known before. */
async function describeTool(step: Step, deps: DryRunDeps): Promise<Partial<DryRunStep>> {
  const name = String(step.with['tool'])
  const agent = await findAgent(step, deps)
  const text = `calls the tool ${name}`
  if (!agent) return { text, most_calls: mostCalls(step), problem: 'it names no agent that exists' }
  const as = { agent_id: agent.id, agent_name: agent.name, text: `${text} as "${agent.name}"` }
  const about = { ...as, most_calls: mostCalls(step) }
  if (findPlaceholders(name).length > 0) return about
  const tool = deps.tools.find((each) => each.name === name)
  if (!tool)
    return { ...about, problem: `there is no tool "${name}"${suggest(findNearest(name, deps.tools.map(nameOf)))}` }
  if (!deps.agents.mayUse(agent, tool)) return { ...about, problem: `the agent "${agent.name}" may not use ${name}` }
  return { ...about, needs_approval: deps.approvals?.asks(agent, tool) ?? false }
}

/** Its cost and its approvals are those of the workflow it runs. */
async function describeWorkflow(
  step: Step,
  input: string,
  deps: DryRunDeps,
  depth: number,
): Promise<Partial<DryRunStep>> {
  const name = String(step.with['workflow'])
  if (findPlaceholders(name).length > 0 || depth >= MAX_DEPTH) return {}
  const found = await deps.findWorkflow(name)
  if (!found) return { problem: `there is no workflow "${name}"` }
  const { estimated_cost_usd: cost, needs_approval: needs, problems } = await rehearse(found, input, deps, depth + 1)
  return {
    estimated_cost_usd: cost === null ? null : cost * mostCalls(step),
    needs_approval: needs.length > 0,
    problem: problems[0] ?? null,
  }
}

function describeOther(step: Step, { steps }: DryRunDeps): Partial<DryRunStep> {
  const type = steps.find(step.type)
  if (!type) return { problem: steps.explainMissing(step.type) }
  const { text, needsApproval } = type.describe?.(step.with) ?? { text: type.description, needsApproval: false }
  return { text, needs_approval: needsApproval, most_calls: mostCalls(step) }
}

function variablesOf({ prompt, with: settings }: Step): string[] {
  const texts = [prompt, ...textsIn(settings)]
  return [...new Set(texts.flatMap((text) => findPlaceholders(text).map(({ name }) => name)))]
}

async function findAgent({ agent }: Step, { agents }: DryRunDeps): Promise<Agent | undefined> {
  if (!agent) return undefined
  return 'id' in agent ? agents.find(agent.id) : agents.findByName(agent.name)
}

async function resolveModel(
  { manifest }: Agent,
  { inference }: DryRunDeps,
): Promise<{ readonly resolved: ResolvedModel | undefined; readonly problem: string | null }> {
  const { provider, model, base_url: baseUrl, api_key_env: apiKeyEnv } = manifest.model
  try {
    const choice = { provider, model, ...(baseUrl && { baseUrl }), ...(apiKeyEnv && { apiKeyEnv }) }
    return { resolved: await inference?.resolve(choice), problem: null }
  } catch (error) {
    if (error instanceof Refusal) return { resolved: undefined, problem: error.message }
    throw error
  }
}

/** As if the model were called once for each iteration and answered with all the tokens it may. */
function costOf({ price }: ResolvedModel, { manifest }: Agent, step: Step, input: string, calls: number) {
  if (!price) return null
  const { system_prompt: system, max_tokens: answer } = manifest.model
  const others = findPlaceholders(step.prompt).filter(({ name }) => name !== 'input' && name !== 'run_input').length
  const prompt = (system.length + step.prompt.length + input.length) / CHARS_PER_TOKEN + others * answer
  return (calls * (prompt * price.input + answer * price.output)) / USD_PER_TOKENS + calls * (price.request ?? 0)
}
