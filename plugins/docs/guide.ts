import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { documentOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { escapeHtml } from './escape.ts'
import { tableLinks, titleOf, toHtml } from './markdown.ts'
import type { Link } from './markdown.ts'
import { guidePage } from './pages.ts'
import { searchPages } from './search.ts'
import type { Found } from './search.ts'

const HOME = 'README.md'

/**
 * The files of `docs/` as HTML, with the README as the first page. Nothing is kept: a page takes a few milliseconds, and
 * what is edited shows at once.
 */
export interface Guide {
  home(): Promise<string>
  /** `undefined` when there is no such page. */
  page(name: string): Promise<string | undefined>
  search(words: string): Promise<string>
  /** What is shown instead of a page that does not exist. */
  missing(name: string): Promise<string>
}

/** `plugin` is the folder of the plugin; the documents are in the package that it is part of. */
export async function openGuide(plugin: string): Promise<Guide> {
  const root = packageOf(plugin)
  const files = await listFiles(root)
  const read = (file: string): Promise<string> => readFile(join(root, file), 'utf8')
  const [template, readme] = await Promise.all([readFile(join(plugin, guidePage.file), 'utf8'), read(HOME)])

  const links = tableLinks(readme, 'Documents').map((row) =>
    row.flatMap(({ text, href }) => {
      const url = resolve(HOME, href, files)
      return url === undefined ? [] : [{ text, href: url }]
    }),
  )
  const draw = async (title: string, content: string, current?: string): Promise<string> => {
    const parts: Readonly<Record<string, string>> = { navigation: navigation(links, current), content }
    const text = template.replaceAll(/<!--(\w+)-->/g, (mark, name: string) => parts[name] ?? mark)
    const windowTitle = title === guidePage.title ? title : `${title} · ${guidePage.title}`
    return documentOf(guidePage, 'guide.html', text, { folder: '/pages/docs/guide/', windowTitle })
  }
  const render = (file: string, text: string): string => toHtml(text, (href) => resolve(file, href, files))

  return {
    home: () => draw(guidePage.title, render(HOME, readme), ''),
    async page(name) {
      const file = [`docs/${name}.md`, `docs/${name}`].find((one) => files.has(one))
      if (file === undefined) return undefined
      const text = extname(file) === '.md' ? await read(file) : asCode(name, await read(file))
      return draw(titleOf(text), render(file, text), name)
    },
    async search(words) {
      const pages = [...files].filter((file) => file.endsWith('.md'))
      const texts = await Promise.all(pages.map(async (file) => ({ url: urlOf(file), text: await read(file) })))
      return draw('Search', results(words, searchPages(texts, words)))
    },
    missing: (name) =>
      draw(
        'No such page',
        `<h2>There is no page “${escapeHtml(name)}”</h2><p>Search above, or take one of the list.</p>`,
      ),
  }
}

function packageOf(plugin: string): string {
  for (let folder = plugin; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'docs'))) return folder
    if (dirname(folder) === folder)
      throw new Refusal('not_found', 'This installation has no folder docs: install svc again to read its guide here')
  }
}

async function listFiles(root: string): Promise<ReadonlySet<string>> {
  const entries = await readdir(join(root, 'docs'), { recursive: true, withFileTypes: true })
  const names = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return new Set([HOME, ...names.map((name) => name.slice(root.length + 1).replaceAll('\\', '/'))].toSorted())
}

const urlOf = (file: string): string =>
  file === HOME ? '/docs/guide' : `/docs/guide/${file.slice('docs/'.length).replace(/\.md$/, '')}`

/** Where a link of a file leads: to a page of the guide, or elsewhere; `undefined` for a file that is not published. */
function resolve(file: string, href: string, files: ReadonlySet<string>): string | undefined {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href
  const [path = '', anchor] = href.split('#')
  const target = join(dirname(file), path).replaceAll('\\', '/')
  if (!files.has(target)) return undefined
  return anchor === undefined ? urlOf(target) : `${urlOf(target)}#${anchor}`
}

function asCode(name: string, text: string): string {
  return `# ${name}\n\n\`\`\`\`${extname(name).slice(1)}\n${text}\n\`\`\`\`\n`
}

/** A row of the table of the README: a page, and below it those that the row names. */
function navigation(rows: readonly (readonly Link[])[], current: string | undefined): string {
  const link = ({ text, href }: Link): string => {
    const name = href.slice('/docs/guide/'.length)
    const isCurrent = name === current || current?.startsWith(`${name}/`) === true
    return `<a href="${escapeHtml(href)}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(text)}</a>`
  }
  const list = (links: readonly Link[]): string =>
    links.length === 0 ? '' : `<ul>${links.map((one) => `<li>${link(one)}</li>`).join('')}</ul>`
  return `<ul>${rows.map(([head, ...below]) => (head ? `<li>${link(head)}${list(below)}</li>` : '')).join('')}</ul>`
}

function results(words: string, found: readonly Found[]): string {
  const quoted = `“${escapeHtml(words.trim())}”`
  if (found.length === 0) return `<h2>Nothing is found for ${quoted}</h2><p>Try fewer words, or other ones.</p>`
  const items = found.map(
    ({ title, url, excerpt }) => `<li><a href="${escapeHtml(url)}">${escapeHtml(title)}</a><p>${excerpt}</p></li>`,
  )
  return `<h2>Found for ${quoted}</h2><ol class="results">${items.join('')}</ol>`
}
