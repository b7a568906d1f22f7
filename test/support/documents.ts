import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A fenced block of a document. */
export interface Block {
  /** `docs/agents.md:12`: the line that opens it. */
  readonly at: string
  readonly page: string
  readonly language: string
  readonly text: string
}

/** Every fenced block of the README and of `docs/`, in their order. */
export function documentBlocks(...languages: readonly string[]): readonly Block[] {
  return documentPages()
    .flatMap((page) => blocksOf(page, readDocument(page)))
    .filter(({ language }) => languages.includes(language))
}

export const readDocument = (page: string): string => readFileSync(`${root}/${page}`, 'utf8')

export function documentPages(): readonly string[] {
  const names = readdirSync(`${root}/docs`, { recursive: true, encoding: 'utf8' })
  return ['README.md', ...names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)].toSorted()
}

function blocksOf(page: string, text: string): readonly Block[] {
  return [...text.matchAll(/^( *)```(\w+)\n(.*?)^\1```$/gms)].map(({ index, 2: language = '', 3: block = '' }) => ({
    at: `${page}:${text.slice(0, index).split('\n').length}`,
    page,
    language,
    text: block,
  }))
}

/**
 * The commands of a script, as words: those of pipes and lists one by one, without comments, redirections and the texts
 * of here-documents. It reads what documents have, not all of a shell.
 */
export function commandsIn(script: string): readonly (readonly string[])[] {
  const text = script.replaceAll(/<<'(\w+)'.*?^\1$/gms, '').replaceAll('\\\n', ' ')
  const commands: string[][] = [[]]
  // A word may hold a placeholder such as <id>.
  const token =
    /[^\S\n]*(?:(#[^\n]*)|(\n|&&|\|\||[|;&])|((?:<[a-z_ ]+>|'[^']*'|"(?:\\.|[^"\\])*"|\$\([^)]*\)|\\.|[^\s'"|;&<>\\])+)|([<>]+ *\S+))/gy
  for (const [, , end, word] of text.matchAll(token)) {
    if (end !== undefined) commands.push([])
    else if (word !== undefined) commands.at(-1)?.push(unquote(word))
  }
  return commands.filter((words) => words.length > 0)
}
function unquote(word: string): string {
  return word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs, (_all, plain, quoted, escaped) =>
    String(plain ?? quoted?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped),
  )
}
