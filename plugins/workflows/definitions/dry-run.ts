import { Refusal } from 'svc/sdk'
import type { ToolDescription } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
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
}

const CHARS_PER_TOKEN = 4
const USD_PER_TOKENS = 1_000_000

/** What a run would do, as far as that is known before. Calls no model and no tool. */
export async function rehearse(workflow: Workflow, input: string, deps: DryRunDeps): Promise<DryRunView> {
  const steps: DryRunStep[] = []
  for (const step of workflow.steps) steps.push(await rehearseStep(step, input, deps))
  const costs = steps
    .filter(({ type, most_calls: calls }) => type === 'agent' && calls > 0)
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

async function rehearseStep(step: Step, input: string, deps: DryRunDeps): Promise<DryRunStep> {
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
  if (step.type !== 'agent') return { ...known, ...describeOther(step, deps) }
  const agent = await findAgent(step, deps)
  if (!agent) return { ...known, most_calls: 1, problem: 'its agent does not exist' }
  const asked = { ...known, agent_id: agent.id, agent_name: agent.name, text: `asks the agent "${agent.name}"` }
  const { resolved, problem } = await resolveModel(agent, deps)
  const calls = step.mode === 'loop' ? step.maxIterations : 1
  return {
    ...asked,
    model: resolved ? `${resolved.provider}/${resolved.model}` : null,
    most_calls: calls * (step.errorMode === 'retry' ? step.maxRetries + 1 : 1),
    estimated_cost_usd: resolved ? costOf(resolved, agent, step, input, calls) : null,
    may_ask_for: deps.tools.filter((tool) => tool.risk === 'execute' && deps.agents.mayUse(agent, tool)).map(nameOf),
    problem,
  }
}
const nameOf = ({ name }: ToolDescription): string => name

function describeOther(step: Step, { steps }: DryRunDeps): Partial<DryRunStep> {
  const type = steps.find(step.type)
  if (!type) return { problem: steps.explainMissing(step.type) }
  const { text, needsApproval } = type.describe?.(step.with) ?? { text: type.description, needsApproval: false }
  return { text, needs_approval: needsApproval, most_calls: step.mode === 'loop' ? step.maxIterations : 1 }
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
