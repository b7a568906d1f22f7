import { compileExpression } from '../expressions/expression.ts'
import type { Scope } from '../expressions/expression.ts'

/** A condition is one expression in double braces, or a text to look for. */
export function readCondition(
  text: string,
): { readonly kind: 'text'; readonly text: string } | { readonly kind: 'expression'; readonly expression: string } {
  const [, expression] = /^\s*\{\{([\s\S]*)\}\}\s*$/.exec(text) ?? []
  return expression === undefined ? { kind: 'text', text } : { kind: 'expression', expression }
}

/**
 * Whether a condition holds. A plain text holds when `output` contains it in any case (API facts 2.3), so an empty one
 * always does.
 */
export async function conditionHolds(text: string, output: string, scope: Scope): Promise<boolean> {
  const condition = readCondition(text)
  if (condition.kind === 'text') return output.toLowerCase().includes(condition.text.toLowerCase())
  return (await compileExpression(condition.expression)).evaluate({ ...scope, output })
}
