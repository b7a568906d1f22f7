import { createHash } from 'node:crypto'
import { canonicalJson } from 'svc/internal'

/** SHA-256 in hex of exactly this action: the tool and its arguments, in whatever order their keys were written. */
export function actionHash(tool: string, args: unknown): string {
  return createHash('sha256')
    .update(`${tool}\0${canonicalJson(args)}`)
    .digest('hex')
}

const SUMMARY_CHARS = 512
/** One line that describes the action: the command, the file or the address, else the arguments. */
export function summarise(tool: string, args: unknown): string {
  const text = `${tool} ${line(args)}`
  return shorten(visible(text.toWellFormed()), SUMMARY_CHARS)
}
function line(args: unknown): string {
  if (typeof args !== 'object' || args === null) return JSON.stringify(args) ?? ''
  const fields = new Map<string, unknown>(Object.entries(args))
  // An argument represents the whole call only when it is the only one that matters.
  if (fields.size === 1)
    for (const name of ['command', 'path', 'url'])
      if (typeof fields.get(name) === 'string') return String(fields.get(name))
  return JSON.stringify(args)
}
function shorten(text: string, chars: number): string {
  if (text.length <= chars) return text
  const end = /[\uD800-\uDBFF]/.test(text.charAt(chars - 2)) ? chars - 2 : chars - 1
  return `${text.slice(0, end)}…`
}

/** Makes hidden and direction-changing characters visible, so that nobody approves what they cannot see. */
export function visible(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )
}
