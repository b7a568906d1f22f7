import { XMLParser } from 'fast-xml-parser'

/** Callbacks are flat. */
const MAX_DEPTH = 10
/** Anything that begins so, except for a text, declares something: entities, for one. */
const DECLARATION = /<!(?!\[CDATA\[)/

const parser = new XMLParser({
  ignoreAttributes: true,
  ignoreDeclaration: true,
  parseTagValue: false,
  processEntities: false,
  trimValues: false,
  maxNestedTags: MAX_DEPTH,
})

/** Reads the XML of a callback: texts only, without attributes and entities. Throws for anything else. */
export function parseXml(text: string): unknown {
  if (DECLARATION.test(text)) throw new Error('a declaration in XML')
  return parser.parse(text, true)
}
