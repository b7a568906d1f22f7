import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { ERROR_MODES, MODES } from '../definition.ts'

const MAX_NAME = 128
const MAX_TEXT = 1_000_000
const text = (maxChars: number) => v.pipe(v.string(), v.maxLength(maxChars))
const count = (description: string) =>
  orAbsent(v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description)))

const ConditionalMode = v.object({ conditional: v.object({ condition: orAbsent(text(MAX_TEXT)) }) })
const LoopMode = v.object({
  loop: v.object({ max_iterations: orAbsent(v.pipe(v.number(), v.integer())), until: orAbsent(text(MAX_TEXT)) }),
})
const RetryMode = v.object({ retry: v.object({ max_retries: orAbsent(v.pipe(v.number(), v.integer())) }) })
const one = (names: readonly string[]) => `expected ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`

/** A step as clients send it (Interface 2.3), and as compatible services store it (API facts 2.3). */
export const StepBody = v.object({
  name: orAbsent(
    v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(MAX_NAME), v.description('Default: `step`.')),
  ),
  type: orAbsent(
    v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_/-]{0,63}$/), v.description('What it does. Default: `agent`.')),
  ),
  agent_id: orAbsent(v.pipe(v.string(), v.uuid('expected the UUID of an agent; a name is written as agent_name'))),
  agent_name: orAbsent(text(256)),
  agent: orAbsent(
    v.pipe(
      v.object({ id: orAbsent(v.pipe(v.string(), v.uuid())), name: orAbsent(text(256)) }),
      v.description('Another way to write agent_id and agent_name.'),
    ),
  ),
  prompt: orAbsent(
    v.pipe(text(MAX_TEXT), v.description('With `{{input}}` and `{{<output_var>}}`. Default: `{{input}}`.')),
  ),
  prompt_template: orAbsent(v.pipe(text(MAX_TEXT), v.description('Another name of prompt.'))),
  with: orAbsent(v.pipe(v.record(v.string(), v.unknown()), v.description('What a type other than `agent` needs.'))),
  mode: orAbsent(v.union([v.picklist(MODES), ConditionalMode, LoopMode], one(MODES))),
  timeout_secs: count('Of each attempt. Default: 120.'),
  error_mode: orAbsent(v.union([v.picklist(ERROR_MODES), RetryMode], one(ERROR_MODES))),
  max_retries: count('For `retry`. Default: 3.'),
  retry_delay_secs: count('Before the first retry, and doubled for each further one. Default: 1.'),
  output_var: orAbsent(
    v.pipe(
      v.string(),
      v.regex(/^[A-Za-z_][\w-]{0,63}$/, 'expected a letter, then letters, digits, "_" and "-", at most 64'),
      v.description('The variable that gets the output.'),
    ),
  ),
  condition: orAbsent(v.pipe(text(MAX_TEXT), v.description('A text that the input contains, or `{{ expression }}`.'))),
  max_iterations: count('Of a loop. Default: 5.'),
  until: orAbsent(v.pipe(text(MAX_TEXT), v.description('A text that ends a loop, or `{{ expression }}`.'))),
})
export type StepBody = v.InferOutput<typeof StepBody>

/** An agent that runs a workflow makes all its agents act. */
const RunBy = v.pipe(
  v.array(v.pipe(text(256), v.minLength(1))),
  v.maxLength(100),
  v.description('Agents that may run it with their tools: ids, names or `*`. Default: none.'),
)
const head = {
  name: orAbsent(v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(MAX_NAME))),
  description: orAbsent(text(4_096)),
  total_timeout_secs: orAbsent(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(2_592_000))),
  run_by: orAbsent(RunBy),
}
const MISSING_STEPS = "Missing 'steps' array"
const Steps = v.pipe(v.array(StepBody, MISSING_STEPS), v.minLength(1, 'a workflow has one step at least'))
/** `steps` is all that it needs, so nothing else can be missing. */
export const NewWorkflow = v.object({ ...head, steps: Steps }, MISSING_STEPS)
export type NewWorkflow = v.InferOutput<typeof NewWorkflow>
/** Fields that are left out stay. */
export const WorkflowChange = v.object({ ...head, steps: orAbsent(Steps) })
export type WorkflowChange = v.InferOutput<typeof WorkflowChange>

export const WorkflowParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid workflow ID')) })

const digits = v.pipe(v.string(), v.regex(/^[1-9]\d{0,8}$/, 'Expected the number of a revision'))
export const RevisionQuery = v.object({
  revision: v.optional(v.pipe(digits, v.description('As it was then; the newest when absent.'))),
})

export const WorkflowItem = v.object({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  steps: v.pipe(v.number(), v.description('How many.')),
  revision: v.number(),
  created_at: v.string(),
  updated_at: v.string(),
  file: v.pipe(v.nullable(v.string()), v.description('In the folder of workflows; changed there only.')),
  problem: v.pipe(v.nullable(v.string()), v.description('Why the present text of the file is not in force.')),
})
export type WorkflowItem = v.InferOutput<typeof WorkflowItem>

export const FileList = v.object({
  files: v.array(
    v.object({
      file: v.string(),
      workflow_id: v.string(),
      problem: v.pipe(v.nullable(v.string()), v.description('Why the present text of the file is not in force.')),
    }),
  ),
})
export const ImportBody = v.object({
  text: v.pipe(v.string(), v.minLength(1), v.description('One workflow, or several, as JSON or TOML.')),
  format: orAbsent(v.picklist(['json', 'toml'])),
  check: orAbsent(v.pipe(v.boolean(), v.description('Create nothing: only say what would be created.'))),
})
export const ImportAnswer = v.object({
  workflows: v.array(
    v.object({
      workflow_id: v.nullable(v.string()),
      name: v.string(),
      steps: v.number(),
      warnings: v.array(v.string()),
    }),
  ),
})

export const StepView = v.object({
  name: v.string(),
  type: v.string(),
  agent_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  prompt: v.string(),
  with: v.optional(v.record(v.string(), v.unknown())),
  mode: v.picklist(MODES),
  timeout_secs: v.number(),
  error_mode: v.picklist(ERROR_MODES),
  max_retries: v.number(),
  retry_delay_secs: v.number(),
  output_var: v.optional(v.string()),
  condition: v.string(),
  max_iterations: v.number(),
  until: v.string(),
})
export const WorkflowView = v.object({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  steps: v.array(StepView),
  total_timeout_secs: v.number(),
  run_by: v.array(v.string()),
  revision: v.number(),
  file: v.nullable(v.string()),
  created_at: v.string(),
  updated_at: v.string(),
})
export type WorkflowView = v.InferOutput<typeof WorkflowView>

/** A row of the list. */
export const StoredItem = v.object({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  step_count: v.number(),
  revision: v.number(),
  file: v.nullable(v.string()),
  run_by: v.pipe(v.string(), v.parseJson(), v.array(v.string())),
  created_at: v.string(),
  updated_at: v.string(),
})
export type StoredItem = v.InferOutput<typeof StoredItem>
export const StoredRevision = v.object({ workflow: v.string() })
export const Count = v.object({ n: v.pipe(v.union([v.number(), v.string()]), v.transform(Number)) })
export const DryRunBody = v.object({ input: v.optional(v.string(), '') })
const DryRunStep = v.object({
  name: v.string(),
  type: v.string(),
  mode: v.picklist(MODES),
  text: v.pipe(v.string(), v.description('What it would do.')),
  agent_id: v.nullable(v.string()),
  agent_name: v.nullable(v.string()),
  model: v.nullable(v.string()),
  variables: v.pipe(v.array(v.string()), v.description('Those it reads.')),
  output_var: v.nullable(v.string()),
  most_calls: v.pipe(v.number(), v.description('How often it is done at most, with its retries.')),
  estimated_cost_usd: v.nullable(v.number()),
  needs_approval: v.boolean(),
  may_ask_for: v.pipe(v.array(v.string()), v.description('Tools of the agent that a person has to approve.')),
  problem: v.nullable(v.string()),
})
export type DryRunStep = v.InferOutput<typeof DryRunStep>
export const DryRunView = v.object({
  workflow_id: v.string(),
  name: v.string(),
  steps: v.array(DryRunStep),
  variables: v.array(v.string()),
  estimated_cost_usd: v.pipe(v.nullable(v.number()), v.description('`null` when a price is not known.')),
  needs_approval: v.pipe(v.array(v.string()), v.description('Names of steps.')),
  problems: v.array(v.string()),
})
export type DryRunView = v.InferOutput<typeof DryRunView>
