import { WarningIcon } from './icons.tsx'

/** A failure above the message box, with a button that resolves or dismisses it. */
export function ProblemBanner({
  problem,
  action,
  onAction,
}: {
  readonly problem: string
  readonly action: string
  readonly onAction: () => void
}) {
  return (
    <div class="problem" role="alert">
      <WarningIcon />
      <p>{problem}</p>
      <button type="button" onClick={onAction}>
        {action}
      </button>
    </div>
  )
}

/** A failure inside a form or a list; nothing without one. */
export function FieldProblem({ id, problem }: { readonly id?: string; readonly problem: string | undefined }) {
  if (problem === undefined) return null
  return (
    <p id={id} class="field-problem" role="alert">
      <WarningIcon /> {problem}
    </p>
  )
}
