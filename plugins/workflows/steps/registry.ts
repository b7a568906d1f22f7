import { findNearest, suggest } from 'svc/internal'
import type { Dispose } from 'svc/sdk'
import type { StepType, WorkflowSteps } from '../contract.ts'

/** The kinds of steps that there are now. */
export class StepTypes implements WorkflowSteps {
  readonly #types = new Map<string, StepType>()

  add(type: StepType): Dispose {
    if (this.#types.has(type.name)) throw new Error(`The step type "${type.name}" exists already`)
    this.#types.set(type.name, type)
    return () => {
      if (this.#types.get(type.name) === type) this.#types.delete(type.name)
    }
  }
  find(name: string): StepType | undefined {
    return this.#types.get(name)
  }
  list(): readonly StepType[] {
    return [...this.#types.values()]
  }
  /** What a message about an unknown one says. */
  explainMissing(name: string): string {
    return `there is no step type "${name}"${suggest(findNearest(name, this.#types.keys()))}`
  }
}
