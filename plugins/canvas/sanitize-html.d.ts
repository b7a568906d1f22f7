/** What is used of sanitize-html, which comes without types. */
declare module 'sanitize-html' {
  interface Tag {
    tagName: string
    attribs: Record<string, string>
  }
  interface Frame {
    readonly tag: string
    readonly attribs: Readonly<Record<string, string>>
    readonly text: string
  }
  interface Options {
    allowedTags: readonly string[]
    allowedAttributes: Readonly<Record<string, readonly string[]>> | false
    allowedSchemes?: readonly string[]
    allowedSchemesByTag?: Readonly<Record<string, readonly string[]>>
    allowProtocolRelative?: boolean
    allowVulnerableTags?: boolean
    parseStyleAttributes?: boolean
    nonTextTags?: readonly string[]
    nestingLimit?: number
    transformTags?: Readonly<Record<string, (name: string, attribs: Record<string, string>) => Tag>>
    exclusiveFilter?: (frame: Frame) => boolean
  }
  export default function sanitizeHtml(dirty: string, options: Options): string
}
