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
    draft.remember({ key: stableId(agent, content), agent, content, confidence: 1, category, file })
}

export function splitMemories(
  text: string,
): readonly { readonly content: string; readonly category: string | undefined }[] {
  const found: { content: string; category: string | undefined }[] = []
  let category: string | undefined
  let paragraph: string[] = []
  const end = (): void => {
    const content = paragraph.join(' ').trim().toWellFormed().replaceAll('\0', '').slice(0, MAX_ENTRY)
    if (content !== '') found.push({ content, category })
    paragraph = []
  }
  for (const line of text.replaceAll(/<!--[^]*?-->/g, '').split(/\r?\n/)) {
    const [, heading] = /^#{1,6}\s+(.+?)\s*#*$/.exec(line) ?? []
    const [, item] = /^\s*(?:[-*+]|\d+[.)])\s+(.+)$/.exec(line) ?? []
    if (heading !== undefined || item !== undefined || line.trim() === '' || /^\s*([-*_]\s*){3,}$/.test(line)) end()
    if (heading !== undefined) category = heading.slice(0, MAX_CATEGORY)
    else if (item !== undefined) paragraph.push(item)
    else if (!/^\s*([-*_]\s*){3,}$/.test(line)) paragraph.push(line.trim())
  }
  end()
  return found
}
