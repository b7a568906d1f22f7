import type { Clock } from 'svc/internal'
import { SerialQueue } from 'svc/sdk'
import type { Step } from '../definition.ts'
import type { Position } from './position.ts'
import type { AttemptRow, RunRow } from './schema.ts'
import type { RunChange } from './store.ts'

/** A run in the hands of a worker. It changes together with its rows. */
export class ActiveRun {
  readonly row: RunRow
  readonly saves = new SerialQueue()
  readonly #clock: Clock
  readonly #since: number
  readonly #variables: Map<string, string>
  readonly #attempts = new Map<string, AttemptRow>()
  #position: Position
  #completed: number

  constructor(row: RunRow, attempts: readonly AttemptRow[], variables: ReadonlyMap<string, string>, clock: Clock) {
    this.row = row
    this.#clock = clock
    this.#since = clock.now()
    this.#variables = new Map(variables)
    this.#position = { index: row.step_index, iteration: row.iteration, input: row.step_input }
    this.#completed = row.steps_completed
    for (const attempt of attempts) this.keep(attempt)
  }

  get id(): string {
    return this.row.id
  }
  get steps(): readonly Step[] {
    return this.row.definition.steps
  }
  get position(): Position {
    return this.#position
  }
  get attempts(): readonly AttemptRow[] {
    return [...this.#attempts.values()]
  }
  /** How long it has worked, waiting not counted. */
  get workedMs(): number {
    return this.row.worked_ms + Math.max(this.#clock.now() - this.#since, 0)
  }
  /** How long it may still work. */
  get leftMs(): number {
    return this.row.definition.totalTimeoutSecs * 1000 - this.workedMs
  }

  /** The last attempt of a step in an iteration. */
  attemptOf(index: number, iteration: number): AttemptRow | undefined {
    return this.#attempts.get(`${index}/${iteration}`)
  }
  keep(attempt: AttemptRow): void {
    this.#attempts.set(`${attempt.step_index}/${attempt.iteration}`, attempt)
  }

  /** What placeholders and expressions read. */
  scope(iteration: number, input: string): Readonly<Record<string, string>> {
    return {
      ...Object.fromEntries(this.#variables),
      input,
      run_input: this.row.input,
      run_id: this.row.id,
      workflow_name: this.row.workflow_name,
      iteration: String(iteration),
    }
  }
  get variables(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#variables)
  }

  /** What the row becomes by a change; `moved` makes it so here once it is on disk. */
  change(change: Partial<RunChange> & { readonly hasCompleted?: boolean } = {}): RunChange {
    const { hasCompleted = false, ...rest } = change
    return {
      position: this.#position,
      stepsCompleted: this.#completed + (hasCompleted ? 1 : 0),
      workedMs: this.workedMs,
      ...rest,
    }
  }
  moved({ position, stepsCompleted }: RunChange): void {
    this.#position = position
    this.#completed = stepsCompleted
  }
  setVariable(name: string, value: string): void {
    this.#variables.set(name, value)
  }
}
