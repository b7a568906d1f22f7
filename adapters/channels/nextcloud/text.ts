import * as v from 'valibot'
import { Parameter } from './wire.ts'
import type { Parameters } from './wire.ts'

const PLACEHOLDER = /\{([\w-]{1,64})\}/g
const MAX_FILES = 20

export interface Rendered {
  readonly text: string
  readonly files: readonly Parameter[]
  /** Somebody with this id is mentioned. */
  readonly mentionsOwn: boolean
}

/** The text as people read it: placeholders are names. A mention of the account itself and files are no part of it. */
export function renderText(message: string, parameters: Parameters, ownId: string | undefined): Rendered {
  const files = new Map<string, Parameter>()
  let mentionsOwn = false
  const written = message.replaceAll(PLACEHOLDER, (placeholder, key: string) => {
    const parsed = v.safeParse(Parameter, Object.hasOwn(parameters, key) ? parameters[key] : undefined)
    if (!parsed.success) return placeholder
    const { type, id, name } = parsed.output
    if (type === 'file') {
      if (files.size < MAX_FILES) files.set(key, parsed.output)
      return ''
    }
    const isOwn = type === 'user' && id === ownId
    mentionsOwn ||= isOwn
    if (isOwn) return ''
    return key.startsWith('mention-') ? `@${name}` : name
  })
  const text = written.trim()
  return { text: mentionsOwn ? text.replace(/^[,:]\s*/, '') : text, files: [...files.values()], mentionsOwn }
}
