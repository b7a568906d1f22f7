import { stableId } from 'svc/internal'
import type { HomeDraft } from '../model.ts'
import type { SourceFolder } from '../source/source-folder.ts'

const MAX_ENTRY = 4_000
const MAX_CATEGORY = 64

/** A memory file in Markdown: an entry for each item of a list and each paragraph, under its heading. */
export async function readMemoryFile(
  draft: HomeDraft,
  folder: SourceFolder,
  file: string,
  agent: string,
): Promise<void> {
  const text = await folder.text(file)
  for (const { content, category } of splitMemories(text ?? ''))
    if (!draft.remember({ key: stableId(agent, content), agent, content, confidence: 1, category, file })) return
}

interface Entry {
  readonly content: string
  readonly category: string | undefined
}
/** Takes a time that grows with the length of the text and no faster, whatever it is full of. */
export function* splitMemories(text: string): Iterable<Entry> {
  let category: string | undefined
  let paragraph: string[] = []
  const end = (): readonly Entry[] => {
    const content = paragraph.join(' ').trim().toWellFormed().replaceAll('\0', '').slice(0, MAX_ENTRY)
    paragraph = []
    return content === '' ? [] : [{ content, category }]
  }
  for (const line of linesOf(withoutComments(text))) {
    const isHeading = /^#{1,6}\s/.test(line)
    const [mark] = /^(?:[-*+]|\d{1,9}[.)])\s/.exec(line) ?? []
    const isRule = /^(?:[-*_]\s*){3}/.test(line) && !/[^-*_\s]/.test(line)
    if (isHeading || mark !== undefined || isRule || line === '') yield* end()
    if (isHeading) category = headingOf(line).slice(0, MAX_CATEGORY) || undefined
    else if (!isRule) paragraph.push(line.slice(mark?.length ?? 0).trim())
  }
  yield* end()
}
function* linesOf(text: string): Iterable<string> {
  for (let from = 0; from <= text.length;) {
    const at = text.indexOf('\n', from)
    const end = at < 0 ? text.length : at
    yield text.slice(from, end).trim()
    from = end + 1
  }
}
/** One that is not closed is none. */
function withoutComments(text: string): string {
  const kept: string[] = []
  let from = 0
  for (;;) {
    const open = text.indexOf('<!--', from)
    const close = open < 0 ? -1 : text.indexOf('-->', open + 4)
    if (close < 0) break
    kept.push(text.slice(from, open))
    from = close + 3
  }
  return [...kept, text.slice(from)].join('')
}
/** Signs may stand behind the text as well. */
function headingOf(line: string): string {
  let end = line.length
  while (line.charAt(end - 1) === '#') end--
  return line.slice(line.search(/\s/), end).trim()
}
