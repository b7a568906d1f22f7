import { XMLParser } from 'fast-xml-parser'

/** The elements of a message of WeChat, as texts. `undefined` for what is no such XML. */
export function readXml(text: string): unknown {
  // Messages are flat, and have no entities.
  const parser = new XMLParser({ parseTagValue: false, processEntities: false, maxNestedTags: 10 })
  try {
    return (parser.parse(text) as { readonly xml?: unknown }).xml
  } catch {
    // Signed or not: there is nothing to read in it.
    return undefined
  }
}
