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
export const InspectionProblem = v.object({ problem: v.string() })

/** What the process is told. */
export const InspectionTask = v.object({ folder: v.string(), maxProblemChars: v.number() })
export type InspectionTask = v.InferOutput<typeof InspectionTask>

/** A plugin chooses the text of its errors, and this ends up in an answer. */
export function shortProblem(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
}
