import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Frame, Page } from 'playwright-core'

const source = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/** Has every page that is opened from now on hold what `accessibilityProblems` runs, which sends it otherwise. */
export async function prepareForProblems(page: Page): Promise<void> {
  await page.addInitScript({ content: await source })
}

/** What breaks WCAG 2.2 AA on a page, or in a frame of one, as it is now, a line for each element; and whether it is wider than the screen. */
export async function accessibilityProblems(page: Page | Frame): Promise<readonly string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(await source)
  const violations = await page.evaluate(async (tags) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: readonly Violation[] }> }
    }
    return (await axe.run({ runOnly: { type: 'tag', values: tags } })).violations
  }, TAGS)
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  return [
    ...violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`),
    ),
    ...(overflow > 0 ? [`the page is ${overflow} pixels wider than the screen`] : []),
  ]
}
