import { createCssVariablesTheme, createHighlighterCore } from 'shiki/core'
import type { HighlighterCore, LanguageInput } from 'shiki/core'
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript'
import type { Grammar } from './grammars.ts'

const loaders: Readonly<Record<Grammar, LanguageInput>> = {
  c: () => import('shiki/langs/c.mjs'),
  cpp: () => import('shiki/langs/cpp.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  dart: () => import('shiki/langs/dart.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  elixir: () => import('shiki/langs/elixir.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  graphql: () => import('shiki/langs/graphql.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  jsx: () => import('shiki/langs/jsx.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  lua: () => import('shiki/langs/lua.mjs'),
  make: () => import('shiki/langs/make.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  nginx: () => import('shiki/langs/nginx.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  powershell: () => import('shiki/langs/powershell.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  ruby: () => import('shiki/langs/ruby.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  scala: () => import('shiki/langs/scala.mjs'),
  scss: () => import('shiki/langs/scss.mjs'),
  shellscript: () => import('shiki/langs/shellscript.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  terraform: () => import('shiki/langs/terraform.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
}
/** A longer line stays as it is. */
const MAX_LINE_CHARS = 2000
const THEME = 'svc'
const PREFIX = '--shiki-'

/** What a part of code is, such as `token-keyword`, and its text. */
export type Token = readonly [kind: string, text: string]

let opened: Promise<HighlighterCore> | undefined

/** The parts of the code; together they are its text. */
export async function highlight(code: string, grammar: Grammar): Promise<readonly Token[]> {
  opened ??= createHighlighterCore({
    themes: [createCssVariablesTheme({ name: THEME, variablePrefix: PREFIX })],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  })
  const highlighter = await opened
  await highlighter.loadLanguage(loaders[grammar])
  const lines = highlighter.codeToTokensBase(code, {
    lang: grammar,
    theme: THEME,
    tokenizeMaxLineLength: MAX_LINE_CHARS,
    // A line that is cut off spoils those after it; whoever waits for the worker has a limit of its own.
    tokenizeTimeLimit: 0,
  })
  return lines.flatMap((line, at): Token[] => [
    ...(at === 0 ? [] : [['', '\n'] as const]),
    ...line.map(({ color, content }) => [kindOf(color), content] as const),
  ])
}

/** The theme names variables of CSS; the page has classes for them, as its policy allows no inline style. */
function kindOf(color: string | undefined): string {
  return color?.startsWith(`var(${PREFIX}`) ? color.slice(`var(${PREFIX}`.length, -1) : ''
}
