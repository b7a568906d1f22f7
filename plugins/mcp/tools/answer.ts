import { isObject } from 'svc/sdk'
import type { ToolAnswer, ToolContent } from 'svc/sdk'
import type { McpObject } from '../contract.ts'

/** The result of a call as an answer of a tool: the parts for who can show them, and a text for the model. */
export function toAnswer(result: McpObject, maxBytes: number): ToolAnswer {
  const size = JSON.stringify(result).length
  if (size > maxBytes)
    return {
      failed: true,
      text: `The result has ${size} bytes, more than plugins.mcp.max_output_bytes (${maxBytes}). Ask for less.`,
    }
  const content = (Array.isArray(result['content']) ? result['content'] : []).filter(isContent)
  const structured = isObject(result['structuredContent']) ? result['structuredContent'] : undefined
  const texts = content.map(describe).filter((text) => text !== '')
  const text = texts.length > 0 || structured === undefined ? texts.join('\n') : JSON.stringify(structured)
  return {
    text: text === '' ? '(no output)' : text,
    content,
    ...(structured && { structured }),
    ...(result['isError'] === true && { failed: true }),
  }
}

const KINDS: ReadonlySet<unknown> = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])
function isContent(part: unknown): part is ToolContent {
  return isObject(part) && KINDS.has(part['type'])
}

function describe(part: ToolContent): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'audio':
      return `[${part.type}: ${part.mimeType}, ${kilobytes(part.data)}]`
    case 'resource': {
      const { uri, text, blob, mimeType } = part.resource
      if (text !== undefined) return `[resource ${uri}]\n${text}`
      return `[resource ${uri}: ${mimeType ?? 'unknown type'}, ${kilobytes(blob ?? '')}]`
    }
    case 'resource_link':
      return `[resource ${part.uri}: ${part.title ?? part.name}]${part.description ? ` ${part.description}` : ''}`
  }
}
const kilobytes = (base64: string): string => `${Math.ceil((base64.length * 3) / 4 / 1024)} KB`
