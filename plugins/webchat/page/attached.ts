/** A file that the daemon has, and a message refers to. */
export interface AttachedFile {
  readonly fileId: string
  readonly name: string
}
interface Written {
  readonly text: string
  readonly files: readonly AttachedFile[]
  /** What the agent was given of the files, if anything. */
  readonly quoted?: string
}

const LINE =
  String.raw`\[Attached file: uploads\/([\da-f-]{36})\/(.{1,80}?), [\w.+-]{1,60}\/[\w.+-]{1,60}(?:; charset=[\w-]{1,20})?, ` +
  String.raw`\d{1,15} bytes(?:\. What it holds is not part of this message: the file is in your workspace, under that path\.)?\]$`
const FIRST_LINE = new RegExp(`\n\n${LINE}`, 'm')
const LINES = new RegExp(`^${LINE}`, 'gm')

/**
 * A recorded message names its files, and quotes their text, after what was written. Whoever writes a message can write
 * such lines too, so no other text is left out: the agent reads all of it.
 */
export function splitAttached(content: string): Written {
  const end = content.search(FIRST_LINE)
  if (end < 0) return { text: content, files: [] }
  const rest = content.slice(end)
  const files = Array.from(rest.matchAll(LINES), ([, fileId = '', name = '']) => ({ fileId, name }))
  const quoted = rest.replaceAll(LINES, '').trim()
  return { text: content.slice(0, end), files, ...(quoted === '' ? {} : { quoted }) }
}
