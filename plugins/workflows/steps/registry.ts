import { findNearest, suggest } from 'svc/internal'
import type { Dispose } from 'svc/sdk'
import type { StepType, WorkflowSteps } from '../contract.ts'

interface Registered {
  readonly type: StepType
  readonly leave: AbortController
}

/** The kinds of steps that there are now. */
export class StepTypes implements WorkflowSteps {
  readonly #types = new Map<string, Registered>()

  add(type: StepType): Dispose {
    if (this.#types.has(type.name)) throw new Error(`The step type "${type.name}" exists already`)
    const registered = { type, leave: new AbortController() }
    this.#types.set(type.name, registered)
    return () => {
      if (this.#types.get(type.name) === registered) this.#types.delete(type.name)
      // Calls that run are made again by whoever adds it next.
      registered.leave.abort(new Error(`the plugin of the step type "${type.name}" is being replaced`))
    }
  }
  find(name: string): StepType | undefined {
    return this.#types.get(name)?.type
  }
  /** Aborts when the plugin of a step type takes it back. */
  leaving(name: string): AbortSignal | undefined {
    return this.#types.get(name)?.leave.signal
  }
  list(): readonly StepType[] {
    return [...this.#types.values()].map(({ type }) => type)
  }
  /** What a message about an unknown one says. */
  explainMissing(name: string): string {
    return `there is no step type "${name}"${suggest(findNearest(name, this.#types.keys()))}`
  }
}
