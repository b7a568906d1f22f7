import * as v from 'valibot'

/** The file descriptor that the process writes its answer to: one line of JSON. */
export const ANSWER_FD = 3

/** What a plugin declares, as the process that reads its code tells it. */
export const Inspection = v.object({
  name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/), v.maxLength(64)),
  version: v.pipe(v.string(), v.maxLength(200)),
  apiVersion: v.optional(v.pipe(v.string(), v.maxLength(200))),
  permissions: v.pipe(v.array(v.pipe(v.string(), v.maxLength(300))), v.maxLength(1000)),
  declaresUses: v.boolean(),
  requires: v.array(v.string()),
  provides: v.array(v.string()),
  /** What it uses that does not cross to a process of its own. */
  unsupported: v.array(v.string()),
})
export type Inspection = v.InferOutput<typeof Inspection>
export const InspectionProblem = v.object({ problem: v.pipe(v.string(), v.transform(shortProblem)) })

/** A plugin chooses the text of its errors, and this ends up in an answer. */
const MAX_PROBLEM_CHARS = 2000
export function shortProblem(text: string): string {
  return text.length > MAX_PROBLEM_CHARS ? `${text.slice(0, MAX_PROBLEM_CHARS)}…` : text
}
