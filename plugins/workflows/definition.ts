export { RUN_STATES } from './contract.ts'
export type { RunState } from './contract.ts'

/** How a step follows those before it (Interface 2.3). */
export const MODES = ['sequential', 'fan_out', 'collect', 'conditional', 'loop'] as const
export type Mode = (typeof MODES)[number]
/** What a failure of a step means: the run fails, the input goes on unchanged, or the step is tried again. */
export const ERROR_MODES = ['fail', 'skip', 'retry'] as const
export type ErrorMode = (typeof ERROR_MODES)[number]

/** A step, checked and with its defaults. */
export interface Step {
  /** Unique in its workflow. */
  readonly name: string
  /** What it does: `agent`, `tool`, `workflow`, `approval`, `wait`, `http`, or the step type of a plugin. */
  readonly type: string
  /** Who does it; of an agent step always there, unless its mode is `collect`. A name is looked up when the step runs. */
  readonly agent: { readonly id: string } | { readonly name: string } | undefined
  /** What an agent is asked: `{{input}}` and `{{<variable>}}` are replaced in one pass. */
  readonly prompt: string
  /** What the other types need, such as the tool and its arguments; placeholders in texts are replaced. */
  readonly with: Readonly<Record<string, unknown>>
  readonly mode: Mode
  /** Of each attempt. */
  readonly timeoutSecs: number
  readonly errorMode: ErrorMode
  readonly maxRetries: number
  /** Before the first retry; doubled for each further one. */
  readonly retryDelaySecs: number
  /** The variable that gets the output. */
  readonly outputVar: string | undefined
  /** Of a conditional step: a text that the input must contain, or an expression in `{{ }}`. */
  readonly condition: string
  readonly maxIterations: number
  /** Of a loop: a text that ends it, or an expression in `{{ }}`. */
  readonly until: string
}

/**
 * What placeholders and expressions can read besides the variables of earlier steps: the current input, the input of the
 * run, its id, the name of the workflow, and in a loop the number of the iteration, from 1.
 */
export const BUILT_IN_VARIABLES = ['input', 'run_input', 'run_id', 'workflow_name', 'iteration'] as const
/**
 * What expressions can read in addition: for `until` the output of the iteration, for `condition` that of the step
 * before, which is the current input.
 */
export const OUTPUT_VARIABLE = 'output'

export interface Workflow {
  readonly id: string
  /** From 1; every change makes a new one. */
  readonly revision: number
  readonly name: string
  readonly description: string
  readonly steps: readonly Step[]
  /** Seconds that a whole run may work; waiting is not counted. */
  readonly totalTimeoutSecs: number
  /** The file in `<home>/workflows` that it comes from; such a workflow is changed there only. */
  readonly file: string | undefined
  /** Agents that may run it with their tools: ids, names of agents that no agent made, or `*`. The operator's choice. */
  readonly runBy: readonly string[]
  /** ISO 8601 UTC. */
  readonly createdAt: string
  readonly updatedAt: string
}

/** Where the engine reads definitions. */
export interface Definitions {
  list(): Promise<readonly { readonly id: string; readonly name: string; readonly description: string }[]>
  find(id: string): Promise<Workflow | undefined>
  /** The only workflow of this name. Throws `conflict` when there are several. */
  findByName(name: string): Promise<Workflow | undefined>
  /** Whether an agent may run it. Throws `agent_not_found`. */
  mayRun(agentId: string, workflow: Pick<Workflow, 'runBy'>): Promise<boolean>
  /** By id or name, of those that an agent may run. Throws `workflow_not_found` and `conflict`. */
  resolveFor(agentId: string, idOrName: string): Promise<Workflow>
  /** By its id or name. Throws `workflow_not_found` that names the nearest one. */
  resolve(idOrName: string): Promise<Workflow>
}
