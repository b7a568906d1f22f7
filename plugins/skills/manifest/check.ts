import * as v from 'valibot'
import { SkillProblem } from './skill.ts'

/** The line of a key, such as `description` or `tools.provided.0.name`, in a text of YAML or TOML; the first line is 1. */
function lineOf(text: string, path: string, firstLine: number): number | undefined {
  const lines = text.split('\n')
  const names = path.split('.').filter((part) => !/^\d+$/.test(part))
  const holds = (name: string) => new RegExp(`^[\\s\\[-]*(?:[\\w."-]+\\.)?"?${RegExp.escape(name)}"?\\s*[:=\\].]`)
  let at = -1
  for (const name of names) {
    const next = lines.findIndex((line, index) => index >= Math.max(at, 0) && holds(name).test(line))
    if (next >= 0) at = next
  }
  return at < 0 ? undefined : at + firstLine
}

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
  const line = key === undefined ? source.firstLine : (lineOf(source.text, key, source.firstLine) ?? source.firstLine)
  return new SkillProblem({ file: source.file, line, ...(key !== undefined && { key }) }, reason)
}
