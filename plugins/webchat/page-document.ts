import type { FilePage } from 'svc/sdk'

/**
 * The document of a page. Its file may be one itself, or hold only what is its own: what all pages have is put around that,
 * with its style sheets and the script that is called as the file. In a frame the page around it has the header.
 */
export function documentOf(page: FilePage, file: string, text: string, isInFrame: boolean): string {
  if (/^\s*<!doctype/i.test(text)) return text
  const title = escapeText(page.title)
  const styles = (page.assets ?? []).filter((name) => name.endsWith('.css'))
  const links = ['../../kit/kit.css', ...styles].map((href) => `<link rel="stylesheet" href="${escapeText(href)}" />`)
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
    <meta name="color-scheme" content="light dark" />
    <title>${title}</title>
    <link rel="icon" href="/favicon.svg" />
    ${links.join('\n    ')}
    <script type="module" src="${escapeText(file.replace(/\.html$/, '.js'))}"></script>
  </head>
  <body>
    <header${isInFrame ? ' hidden' : ''}>
      <div class="column top">
        <h1>${title}</h1>
        <nav aria-label="Pages"><a href="/">Chat</a></nav>
        <span id="live" class="live" hidden></span>
      </div>
    </header>
    <main class="column">
      <p id="notice" role="status" class="notice" hidden></p>
      <p id="problem" role="alert" class="problem" hidden></p>
${text}    </main>
  </body>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escapeText = (text: string): string => text.replaceAll(/[&<>"]/g, (sign) => ENTITIES[sign] ?? '')
