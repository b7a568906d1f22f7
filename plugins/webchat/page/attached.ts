/** A file that the daemon has, and a message refers to. */
export interface AttachedFile {
  readonly fileId: string
  readonly name: string
}

const NOTE = /^\[Attached file: uploads\/([\da-f-]{36})\/(.+?), [^,\n]+, \d+ bytes[\].]/gm

/** A recorded message names its files, and quotes their text, after what was written: here only the names are shown. */
export function splitAttached(content: string): { readonly text: string; readonly files: readonly AttachedFile[] } {
  const end = content.search(/\n\n\[Attached file: uploads\//)
  if (end < 0) return { text: content, files: [] }
  const files = Array.from(content.slice(end).matchAll(NOTE), ([, fileId = '', name = '']) => ({ fileId, name }))
  return { text: content.slice(0, end), files }
}
