import * as v from 'valibot'
import { lineOfKey } from 'svc/internal'
import { SkillProblem } from './skill.ts'

export interface Source {
  /** Relative to the folder of the skill. */
  readonly file: string
  readonly text: string
  /** The line of the file that the text begins at. */
  readonly firstLine: number
}

/** The parsed value. Throws `SkillProblem` with line and key of the first wrong one. */
export function check<S extends v.GenericSchema>(schema: S, value: unknown, source: Source): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortEarly: true, abortPipeEarly: true })
  if (result.success) return result.output
  const [issue] = result.issues
  const key = v.getDotPath(issue) ?? undefined
  const isMissing = issue.message.startsWith('Invalid key: ') && issue.message.endsWith('received undefined')
  throw problemAt(source, key, isMissing ? 'is missing' : issue.message)
}

export function problemAt(source: Source, key: string | undefined, reason: string): SkillProblem {
  const line =
    key === undefined ? source.firstLine : (lineOfKey(source.text, key, source.firstLine) ?? source.firstLine)
  return new SkillProblem({ file: source.file, line, ...(key !== undefined && { key }) }, reason)
}
