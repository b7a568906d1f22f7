import type { FilePage } from 'svc/sdk'

/**
 * The document of a page with a file. That may be one itself, or hold only what is the page's own: what all pages have is
 * put around it, with its style sheets and the script that is called as the file.
 */
export function documentOf(page: FilePage, file: string, text: string, isInFrame: boolean): string {
  if (/^\s*<!doctype/i.test(text)) return text
  const styles = (page.assets ?? []).filter((name) => name.endsWith('.css'))
  const script = file.replace(/\.html$/, '.js')
  return putAround(text, { title: page.title, styles, script, isInFrame })
}

/** What all pages have, around what is the own of one. In a frame the page around it has the header. */
export function putAround(
  content: string,
  {
    title,
    styles = [],
    script,
    isInFrame = false,
  }: {
    readonly title: string
    readonly styles?: readonly string[]
    readonly script: string
    readonly isInFrame?: boolean
  },
): string {
  const name = escapeText(title)
  const links = ['../../kit/kit.css', ...styles].map((href) => `<link rel="stylesheet" href="${escapeText(href)}" />`)
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
    <meta name="color-scheme" content="light dark" />
    <title>${name}</title>
    <link rel="icon" href="/favicon.svg" />
    ${links.join('\n    ')}
    <script type="module" src="${escapeText(script)}"></script>
  </head>
  <body>
    <header${isInFrame ? ' hidden' : ''}>
      <div class="column top">
        <h1>${name}</h1>
        <nav aria-label="Pages"><a href="/">Chat</a></nav>
        <span id="live" class="live" hidden></span>
      </div>
    </header>
    <main class="column">
      <p id="notice" role="status" class="notice" hidden></p>
      <p id="problem" role="alert" class="problem" hidden></p>
${content}    </main>
  </body>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escapeText = (text: string): string => text.replaceAll(/[&<>"]/g, (sign) => ENTITIES[sign] ?? '')
