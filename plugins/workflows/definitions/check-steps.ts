import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Settings } from '../config.ts'
import { BUILT_IN_VARIABLES, OUTPUT_VARIABLE } from '../definition.ts'
import type { Step } from '../definition.ts'
import { compileExpression } from '../expressions/expression.ts'
import { ExpressionError } from '../expressions/tokens.ts'
import type { StepTypes } from '../steps/registry.ts'
import { findPlaceholders, textsIn } from '../templates/template.ts'
import { readCondition } from './condition.ts'

export interface CheckDeps {
  readonly agents: Pick<Agents, 'find' | 'findByName' | 'list'>
  /** Names of agents that will be there. */
  readonly coming?: ReadonlySet<string> | undefined
  readonly steps: Pick<StepTypes, 'find' | 'explainMissing'>
  readonly settings: Settings
}
interface Problem {
  readonly path: string
  readonly message: string
}

const MAX_PROBLEMS = 10
const RESERVED: ReadonlySet<string> = new Set([...BUILT_IN_VARIABLES, OUTPUT_VARIABLE])

/** Throws `invalid_request` that names the steps, their fields and what is wrong there. */
export async function checkSteps(steps: readonly Step[], deps: CheckDeps): Promise<void> {
  const { settings } = deps
  if (steps.length > settings.max_steps)
    throw new Refusal(
      'invalid_request',
      `steps: there are ${steps.length}, and plugins.workflows.max_steps allows ${settings.max_steps}`,
    )
  const problems: Problem[] = []
  for (const [index, step] of steps.entries()) {
    const add = (field: string, message: string): void => {
      problems.push({
        path: `steps.${index}.${field}`,
        message: `step ${index + 1} "${step.name}": ${field}: ${message}`,
      })
    }
    checkName(steps, index, add)
    checkNumbers(step, settings, add)
    checkMode(steps, index, add)
    await checkAgent(step, deps, add)
    await checkType(step, deps, add)
    await checkTexts(steps, index, add)
    if (problems.length >= MAX_PROBLEMS) break
  }
  const [first] = problems
  if (first)
    throw new Refusal('invalid_request', first.message, { details: { issues: problems.slice(0, MAX_PROBLEMS) } })
}

type Add = (field: string, message: string) => void

function checkName(steps: readonly Step[], index: number, add: Add): void {
  const first = steps.findIndex(({ name }) => name === steps[index]?.name)
  if (first < index) add('name', `step ${first + 1} has this name already`)
  const variable = steps[index]?.outputVar
  if (variable !== undefined && RESERVED.has(variable)) add('output_var', `"${variable}" is built in; use another name`)
}

function checkNumbers(step: Step, settings: Settings, add: Add): void {
  const atMost = (field: string, value: number, min: number, key: 'max_retries' | 'max_iterations'): void => {
    if (value < min) add(field, `expected ${min} at least`)
    else if (value > settings[key])
      add(field, `${value} is more than plugins.workflows.${key} allows: ${settings[key]}`)
  }
  if (step.timeoutSecs < 1 || step.timeoutSecs > settings.max_step_timeout_secs)
    add(
      'timeout_secs',
      `expected 1 to ${settings.max_step_timeout_secs} seconds (plugins.workflows.max_step_timeout_secs)`,
    )
  atMost('max_retries', step.maxRetries, 0, 'max_retries')
  if (step.prompt.length > settings.max_prompt_chars)
    add(
      'prompt',
      `it has ${step.prompt.length} characters, and plugins.workflows.max_prompt_chars allows ` +
        String(settings.max_prompt_chars),
    )
  if (step.mode !== 'loop') return
  if (step.until.trim() === '' && step.maxIterations > settings.max_iterations)
    add(
      'until',
      'the loop has no end: say when it ends, or lower max_iterations to ' +
        `${settings.max_iterations} (plugins.workflows.max_iterations)`,
    )
  else atMost('max_iterations', step.maxIterations, 1, 'max_iterations')
}

function checkMode(steps: readonly Step[], index: number, add: Add): void {
  if (steps[index]?.mode === 'collect' && steps[index - 1]?.mode !== 'fan_out')
    add('mode', 'collect joins the outputs of fan_out steps, and there is none right before it')
}

async function checkAgent({ agent, type, mode }: Step, { agents, coming }: CheckDeps, add: Add): Promise<void> {
  if (!agent) {
    if (type === 'tool') add('agent_id', 'expected agent_id or agent_name, whose rights the tool is called with')
    // Collecting joins what is there already.
    if (type === 'agent' && mode !== 'collect') add('agent_id', 'expected agent_id or agent_name')
    return
  }
  if ('id' in agent) {
    if (!(await agents.find(agent.id))) add('agent_id', `there is no agent ${agent.id}`)
    return
  }
  if (coming?.has(agent.name) || (await agents.findByName(agent.name))) return
  const names = (await agents.list()).map(({ name }) => name)
  add('agent_name', `there is no agent "${agent.name}"${suggest(findNearest(agent.name, names))}`)
}

async function checkType(step: Step, { steps }: CheckDeps, add: Add): Promise<void> {
  const type = steps.find(step.type)
  if (!type) {
    if (step.type !== 'agent') add('type', steps.explainMissing(step.type))
    return
  }
  try {
    await type.check(step.with)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const [, field = 'with', message = error.message] = /^(with(?:\.\w+)*): (.*)$/s.exec(error.message) ?? []
    add(field, message)
  }
}

/** Placeholders and expressions read what is known by then. */
async function checkTexts(steps: readonly Step[], index: number, add: Add): Promise<void> {
  const step = steps[index]
  if (!step) return
  const known = knownVariables(steps, index)
  const unknown = (name: string, at: number): string =>
    `there is no variable "${name}" at character ${at + 1}${explainUnknown(name, steps, index, known)}`
  for (const [field, text] of [['prompt', step.prompt], ...[...textsIn(step.with)].map((inner) => ['with', inner])]) {
    if (field === undefined || text === undefined) continue
    const wrong = findPlaceholders(text).find(({ name }) => !known.has(name))
    if (wrong) add(field, unknown(wrong.name, wrong.at))
  }
  for (const [field, text] of [
    ['condition', step.condition],
    ['until', step.until],
  ] as const) {
    const condition = readCondition(text)
    if (condition.kind === 'text') continue
    try {
      const { names } = await compileExpression(condition.expression)
      const wrong = names.find((name) => !known.has(name) && name !== OUTPUT_VARIABLE)
      if (wrong !== undefined) add(field, unknown(wrong, text.indexOf(wrong)))
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      add(field, error.message)
    }
  }
}

function knownVariables(steps: readonly Step[], index: number): ReadonlySet<string> {
  const known = new Set<string>(BUILT_IN_VARIABLES)
  if (steps[index]?.mode !== 'loop') known.delete('iteration')
  for (const { outputVar } of steps.slice(0, startOfGroup(steps, index)))
    if (outputVar !== undefined) known.add(outputVar)
  return known
}
/** Steps of one fan-out run side by side, so none can read what another one writes. */
function startOfGroup(steps: readonly Step[], index: number): number {
  let start = index
  if (steps[index]?.mode === 'fan_out') while (steps[start - 1]?.mode === 'fan_out') start--
  return start
}
function explainUnknown(name: string, steps: readonly Step[], index: number, known: ReadonlySet<string>): string {
  if (name === 'iteration') return '; it is for loops'
  const writer = steps.findIndex(({ outputVar }) => outputVar === name)
  if (writer === index) return '; it is set when this step has ended'
  if (writer > index) return `; step ${writer + 1} "${steps[writer]?.name}" sets it later`
  if (writer >= 0) return `; step ${writer + 1} "${steps[writer]?.name}" sets it at the same time`
  return suggest(findNearest(name, known))
}
