import { isObject, Refusal } from 'svc/sdk'
import { McpRequestError } from '../../mcp/contract.ts'
import type { McpObject } from '../contract.ts'

/** The resource in the answer of the tool that agents read it with. Throws what the server answered, or why not. */
export function toResource(uri: string, answer: McpObject): McpObject {
  throwFailure(answer)
  const parts = Array.isArray(answer['content']) ? answer['content'].filter(isObject) : []
  const contents = parts.flatMap(({ resource }) => (isObject(resource) ? [resource] : []))
  // Text that was screened, or cut, comes without its parts.
  return { contents: contents.length > 0 || parts.length === 0 ? contents : [{ uri, text: textOf(answer) }] }
}
/** The prompt in the answer of the tool that agents get it with. */
export function toPrompt(answer: McpObject): McpObject {
  throwFailure(answer)
  const { structuredContent } = answer
  if (isObject(structuredContent) && Array.isArray(structuredContent['messages'])) return structuredContent
  return { messages: [{ role: 'user', content: { type: 'text', text: textOf(answer) } }] }
}

function throwFailure(answer: McpObject): void {
  if (answer['isError'] !== true) return
  const { structuredContent } = answer
  const error = isObject(structuredContent) ? structuredContent['error'] : undefined
  if (isObject(error) && typeof error['code'] === 'number')
    throw new McpRequestError(error['code'], String(error['message']), error['data'])
  throw new Refusal('forbidden', textOf(answer))
}
function textOf({ content }: McpObject): string {
  const parts = Array.isArray(content) ? content.filter(isObject) : []
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n\n')
}
