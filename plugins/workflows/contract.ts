import { defineService, notify } from 'svc/sdk'
import type { Dispose } from 'svc/sdk'

export interface Asker {
  readonly agentId: string
  readonly turnId: string | undefined
  readonly sessionId: string | undefined
}
/** One attempt of a step. */
export interface StepCall {
  readonly runId: string
  readonly workflowName: string
  readonly step: string
  /**
   * A UUID that is the same whenever this attempt is made again, such as after a crash: use it as the idempotency key of
   * what has an effect.
   */
  readonly key: string
  /** From 1. An attempt that failed is another attempt; one that was cut off is the same. */
  readonly attempt: number
  /** As the definition has it, with all placeholders replaced. */
  readonly with: Readonly<Record<string, unknown>>
  readonly input: string
  readonly variables: Readonly<Record<string, string>>
  /** The agent that the step names, or that made the workflow. */
  readonly agentId: string | undefined
  /** The agent that began the run by a tool, or that made what did, and the turn and conversation of that. */
  readonly asker: Asker | undefined
  /**
   * Labels of the texts that the placeholders brought in, such as `UntrustedAgent` for the output of an earlier step.
   */
  readonly labels: readonly string[]
  /** Daemons that what began the run came through: a message that the step sends to another daemon counts one more. */
  readonly hops: number
  /**
   * An earlier call of this attempt was cut off, such as by a crash: it may have had its effect, which must not be had
   * twice. Throw `OutcomeUnknown` where nobody can tell: the step is then not tried again.
   */
  readonly wasCutOff: boolean
  /** What an earlier call of this attempt returned as `state`; `undefined` at first. JSON. */
  readonly state: unknown
  /** Aborts when the run is cancelled, the time is over or the daemon stops. */
  readonly signal: AbortSignal
}
/**
 * - `done`: the output goes to the next step.
 * - `waiting`: the step is called again with `state` after a time, or when `WorkflowRuns.wake` names its key. The run
 *   waits without holding anything.
 */
export type StepResult =
  | {
      readonly outcome: 'done'
      readonly output: string
      readonly inputTokens?: number
      readonly outputTokens?: number
      /** `null` when it is not known. */
      readonly costUsd?: number | null
    }
  | {
      readonly outcome: 'waiting'
      readonly state: unknown
      /** Milliseconds since 1970. When absent, it is called again every minute too, in case a wake was lost. */
      readonly untilMs?: number
      /** An event that wakes it; its payload is then the `state`, as `{ event: … }`. */
      readonly event?: string
    }

/** The step may have had its effect, or not. It is not tried again, whatever its `error_mode`. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}

/** A kind of step. */
export interface StepType {
  /** Lower case; that of a plugin outside of svc begins with the name of the plugin and a slash. */
  readonly name: string
  /** One line for people who write workflows. */
  readonly description: string
  /** Throws a `Refusal` that names the field when `with` of a definition cannot be right. Placeholders are still in it. */
  check(definition: Readonly<Record<string, unknown>>): void | Promise<void>
  /** A rejection is a failure of the attempt. */
  run(call: StepCall): Promise<StepResult>
  /** For a rehearsal: what the step would do, in one line, and whether a person would be asked first. */
  describe?(definition: Readonly<Record<string, unknown>>): { readonly text: string; readonly needsApproval: boolean }
}

/** Kinds of steps that plugins add. */
export interface WorkflowSteps {
  /** Until it is disposed. Throws when the name is taken. */
  add(type: StepType): Dispose
}
export const WorkflowSteps = defineService<WorkflowSteps>()('workflow-steps')

/** Interface 2.3 and API facts 2.3; list and run answers write them as they are here. */
export const RUN_STATES = ['Pending', 'Running', 'Completed', 'Failed', 'Paused', 'Cancelled'] as const
export type RunState = (typeof RUN_STATES)[number]
export interface RunSummary {
  readonly id: string
  readonly workflowId: string
  readonly state: RunState
  readonly output: string | undefined
  readonly error: string | undefined
}
/** A workflow, for those who offer it to others. */
export interface WorkflowInfo {
  readonly id: string
  readonly name: string
  readonly description: string
}
export interface WorkflowRuns {
  /** The workflows that are defined. */
  workflows(): Promise<readonly WorkflowInfo[]>
  /**
   * The id of a workflow by its id or name. Throws `workflow_not_found` that names the nearest one. With an agent: of
   * one that this agent may run at any time without asking a person; `forbidden` when it may run none so.
   */
  resolve(idOrName: string, agentId?: string): Promise<string>
  /**
   * Begins a run; `id` is a UUID that is the same whenever the same run is asked for. Settles when it is on disk. Throws
   * `workflow_not_found`, `rate_limit`, `conflict` when too many run each other, and `forbidden` when the agent that
   * asks may not run it.
   */
  start(run: {
    readonly id: string
    readonly workflowId: string
    readonly input: string
    /** Who asked, for the record: `api`, `schedule <id>`, `agent <id>`. */
    readonly cause: string
    /**
     * The agent that asks, or that made the schedule or trigger that does: it may run only what
     * its operator lets it run, as a run makes other agents act. Absent when a person asks.
     */
    readonly agentId?: string
    /** The turn that asks: a run that begins within a step of another one counts as inside of it. */
    readonly withinTurn?: string
    /** The conversation of that turn, where a person answers what the run asks. */
    readonly sessionId?: string
    /** Daemons that the request came through; 0 when absent. */
    readonly hops?: number
  }): Promise<void>
  find(id: string): Promise<RunSummary | undefined>
  /** Settles when the run has ended or is paused. Rejects when the signal aborts, which does not stop the run. */
  settled(id: string, signal: AbortSignal): Promise<RunSummary>
  cancel(id: string, reason: string): Promise<boolean>
  /** Calls a waiting step again, such as when its approval was answered. */
  wake(stepKey: string): Promise<void>
}
export const WorkflowRuns = defineService<WorkflowRuns>()('workflow-runs')

/** Workflows that come from elsewhere. */
export interface WorkflowImports {
  /**
   * Makes one of a definition of this or a compatible service; `made` is `false` when there is one of this id, which
   * stays as it is. `isCheck` makes nothing. `agents` are names here by the names and ids that the definition has; for a
   * check they need not be there yet. Throws `invalid_request` that names step and field, `conflict`.
   */
  add(
    id: string,
    definition: unknown,
    options?: { readonly isCheck?: boolean; readonly agents?: ReadonlyMap<string, string> },
  ): Promise<{ readonly made: boolean; readonly warnings: readonly string[] }>
}
export const WorkflowImports = defineService<WorkflowImports>()('workflow-imports')

/** A definition was created, changed or deleted. It is on disk. */
export const WorkflowChanged = notify<{
  readonly workflowId: string
  readonly name: string
  readonly change: 'created' | 'updated' | 'deleted'
}>('workflows:changed')
/** A run changed its state. It is on disk. */
export const WorkflowRunChanged = notify<RunSummary & { readonly workflowName: string }>('workflows:run-changed')
/** A step of a run ended. It is on disk. */
export const WorkflowStepEnded = notify<{
  readonly runId: string
  readonly step: string
  readonly state: 'completed' | 'failed' | 'skipped'
}>('workflows:step-ended')
