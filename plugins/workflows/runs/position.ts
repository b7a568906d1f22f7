import type { Step } from '../definition.ts'
import type { AttemptRow } from './schema.ts'

/** Where a run goes on. */
export interface Position {
  /** Of the step, from 0; as many as there are steps at the end. */
  readonly index: number
  /** Of a loop, from 1. */
  readonly iteration: number
  readonly input: string
}
/** How a step ended; a skipped one has no output. */
export type StepEnd =
  | { readonly outcome: 'done'; readonly output: string }
  | { readonly outcome: 'skipped'; readonly error: string }

const SEPARATOR = '\n\n---\n\n'

export const positionAfter = (index: number, input: string): Position => ({ index, iteration: 1, input })

/** The steps that run side by side from here: consecutive ones of the mode `fan_out`, or a single one. */
export function groupAt(steps: readonly Step[], index: number): readonly Step[] {
  if (steps[index]?.mode !== 'fan_out') return steps.slice(index, index + 1)
  const end = steps.findIndex(({ mode }, at) => at > index && mode !== 'fan_out')
  return steps.slice(index, end === -1 ? steps.length : end)
}

/** The outputs of the fan-out steps since the last `collect`, in the order of the steps (API facts 2.3). */
export function collectOutputs(steps: readonly Step[], index: number, attempts: readonly AttemptRow[]): string {
  const since = steps.slice(0, index).findLastIndex(({ mode }) => mode === 'collect')
  return attempts
    .filter(({ step_index: at, state }) => at > since && at < index && state === 'completed')
    .filter(({ step_index: at }) => steps[at]?.mode === 'fan_out')
    .toSorted((a, b) => a.step_index - b.step_index)
    .map(({ output }) => output ?? '')
    .join(SEPARATOR)
}

/** The input of what follows a group: the last output there is, or the same input. */
export function inputAfter(ends: readonly StepEnd[], input: string): string {
  const last = ends.findLast((end) => end.outcome === 'done')
  return last?.outcome === 'done' ? last.output : input
}

/** The name of a step in results and in messages. */
export function labelOf(step: Step, iteration: number): string {
  return step.mode === 'loop' ? `${step.name} (iter ${iteration})` : step.name
}
