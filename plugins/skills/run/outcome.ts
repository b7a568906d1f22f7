import { isObject, readJson } from 'svc/sdk'
import type { ToolAnswer } from 'svc/sdk'

/** How a tool of a skill ended: what it wrote, or why it failed. */
export interface Outcome {
  readonly failed: boolean
  readonly text: string
  /** Files that it left in the workspace. */
  readonly files?: readonly string[]
}

/** JSON is answered as it is, other text as `{result}`. */
export function toAnswer(who: string, { failed, text, files = [] }: Outcome): ToolAnswer {
  if (failed) return { failed: true, text: `${who} failed: ${text}` }
  const value = parse(text)
  const note = files.length === 0 ? '' : `\nFiles in the workspace: ${files.join(', ')}`
  if (value === undefined) return { text: JSON.stringify({ result: text }) + note }
  return { text: text + note, ...(isObject(value) && !Array.isArray(value) && { structured: value }) }
}
function parse(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined /* plain text */
  }
}
