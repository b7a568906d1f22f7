const MAX_LINE = 118

/** Breaks the lines of a paragraph of a generated page at blanks, but not within code. */
export function wrap(paragraph: string): string {
  const lines = ['']
  for (const word of paragraph.match(/(?:`[^`]*`|\S)+/g) ?? []) {
    const line = lines.at(-1) ?? ''
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + word.length < MAX_LINE) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}
