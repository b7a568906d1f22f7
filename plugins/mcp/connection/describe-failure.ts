import { stripVTControlCharacters } from 'node:util'
import { messageOf } from 'svc/internal'
import { isObject, readJson } from 'svc/sdk'

/** What an error says is often the server's own text, of any length. */
const MAX_CHARS = 1000

/** What went wrong, as one bounded line: without control characters and without the lists of issues of the SDK. */
export function describeFailure(error: unknown): string {
  if (error instanceof RangeError && /call stack/.test(error.message))
    return 'the server sent a message that is nested too deeply'
  const text = shortenIssues(messageOf(error))
  const line = stripVTControlCharacters(text.slice(0, 4 * MAX_CHARS)).replaceAll(/[\p{Cc}\s]+/gu, ' ')
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1)}…` : line
}

/** The SDK writes all issues of a message as JSON: the first says enough. */
function shortenIssues(text: string): string {
  const start = text.search(/\[\s*\{\s*"/)
  if (start === -1) return text
  const issue = firstIssue(text.slice(start))
  return issue === undefined ? text : `${text.slice(0, start)}${issue}`
}

function firstIssue(json: string): string | undefined {
  let issues: unknown
  try {
    issues = readJson(json)
  } catch {
    return undefined
  }
  const [issue] = Array.isArray(issues) ? issues.filter(isObject) : []
  if (typeof issue?.['message'] !== 'string') return undefined
  const path = Array.isArray(issue['path']) ? issue['path'].join('.') : ''
  // Of the forms that something could have, none may be the one that was meant.
  const problem = issue['code'] === 'invalid_union' ? 'not what the specification of MCP says' : issue['message']
  return path === '' ? problem : `${path}: ${problem}`
}
