import type { Step } from '../definition.ts'
import { findPlaceholders, textsIn } from '../templates/template.ts'
import type { ActiveRun } from './run.ts'

/** What placeholders bring in that no step and no caller wrote. */
const OWN: ReadonlySet<string> = new Set(['run_id', 'workflow_name', 'iteration'])
/** An agent or another system wrote it, from unknown sources. */
const OUTSIDE = ['UntrustedAgent', 'ExternalNetwork'] as const
const CALLERS: ReadonlySet<string> = new Set(['api', 'cli', 'schedule'])

/** Labels of what the placeholders of a step bring in (security facts 1.2). */
export function labelsOf(run: ActiveRun, step: Step, index: number): readonly string[] {
  const names = [...textsIn([step.prompt, step.with])].flatMap((text) => findPlaceholders(text).map(({ name }) => name))
  const labels = new Set<string>()
  for (const name of names) {
    if (OWN.has(name)) continue
    const isCallers = name === 'run_input' || (name === 'input' && index === 0 && run.position.iteration === 1)
    if (isCallers && CALLERS.has(run.row.cause.split(' ')[0] ?? '')) labels.add('UserInput')
    else for (const label of OUTSIDE) labels.add(label)
  }
  return [...labels]
}
