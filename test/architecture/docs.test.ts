import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { cliPage } from '../support/cli-page.ts'
import { configurationPage } from '../support/configuration-table.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...['docs', 'docs/channels'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
]
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** What the CLI prints in an empty home. */
function runCli(...args: readonly string[]): string {
  const home = mkdtempSync(join(tmpdir(), 'svc-docs-'))
  try {
    return execFileSync(
      process.execPath,
      ['--conditions=svc-source', join(root, 'core/cli/main.ts'), ...args, '--home', home],
      { encoding: 'utf8', cwd: home },
    )
  } finally {
    rmSync(home, { recursive: true })
  }
}

/** The anchor GitHub makes of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

describe('the documents', () => {
  it('have a README of at most 150 lines', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(150)
  })

  it('link to files and headings that exist', () => {
    const broken = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(([link, path = '', anchor]) => {
        const target = path === '' ? page : join(dirname(page), path)
        if (!existsSync(join(root, target))) return [`${page}: ${link}`]
        const headings = [...read(target).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))
        return anchor === undefined || headings.includes(anchor) ? [] : [`${page}: ${link}`]
      }),
    )
    expect(broken).toEqual([])
  })

  it('say of each thing that is not there yet which page says more', () => {
    const [, ...items] = read('docs/not-there-yet.md').split(/^- /m)
    expect(items.length).toBeGreaterThan(20)
    const unlinked = items.filter(
      (item) => !/\(\[[^\]]+\]\([\w/-]+\.md(?:#[\w-]+)?\)\)/.test(item.split('\n\n')[0] ?? ''),
    )
    expect(unlinked).toEqual([])
  })

  it('are all reached from the README', () => {
    const reached = new Set(['README.md'])
    for (const page of reached)
      for (const [, path = ''] of read(page).matchAll(/\]\(([^)#\s:]+\.md)/g)) reached.add(join(dirname(page), path))
    expect(pages.filter((page) => !reached.has(page))).toEqual([])
  })

  it('name only routes that exist', () => {
    const pattern = /\b(GET|POST|PUT|PATCH|DELETE)\s+(\/(?:api|v1)\/[\w{}/.-]*\w}?)/g
    const routesIn = (page: string): readonly string[] =>
      [...read(page).matchAll(pattern)].map(([, method, path = '']) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
    // The page is made from the routes; sockets are not on it.
    const existing = new Set([...routesIn('docs/authority.md'), 'GET /api/agents/{}/ws'])
    const unknown = pages.flatMap((page) =>
      routesIn(page)
        .filter((route) => !existing.has(route))
        .map((route) => `${page}: ${route}`),
    )
    expect(unknown).toEqual([])
  })

  it('have lines of prose that fit a screen', () => {
    const long = pages
      .filter((page) => !/(?:authority|configuration|cli|sdk|hooks)\.md$/.test(page))
      .flatMap((page) => {
        const outsideTables = read(page)
          .split('\n')
          .map((line, index) => ({ line, at: `${page}:${index + 1}` }))
          .filter(({ line }) => !line.startsWith('|'))
        return outsideTables.filter(({ line }) => line.length > 125).map(({ at }) => at)
      })
    expect(long).toEqual([])
  })

  it('have every key of the configuration', async () => {
    const page = configurationPage(JSON.parse(runCli('config', 'schema')))
    const unexplained = page.split('\n').filter((line) => /^\| `.*\|\s*\|$/.test(line))
    expect(unexplained).toEqual([])
    await expect(page).toMatchFileSnapshot('../../docs/configuration.md')
  })

  it('have every command', async () => {
    await expect(await cliPage()).toMatchFileSnapshot('../../docs/cli.md')
  })
})
