/** What a plugin declares of a page. */
interface Declared {
  readonly title: string
  readonly assets?: readonly string[]
}
/** Where a document is shown, other than in the folder of its files. */
interface Place {
  /** In a frame the page around it has the header. */
  readonly isInFrame?: boolean
  /** The address of its files, with a slash at the end. */
  readonly folder?: string
  /** The title of the window, when it says more than the header. */
  readonly windowTitle?: string
}

/**
 * The document of a page with a file. That may be one itself, or hold only what is the page's own: what all pages have is
 * put around it, with its style sheets and the script that is called as the file.
 */
export function documentOf(page: Declared, file: string, text: string, place: Place = {}): string {
  if (/^\s*<!doctype/i.test(text)) return text
  const styles = (page.assets ?? []).filter((name) => name.endsWith('.css'))
  const script = file.replace(/\.html$/, '.js')
  return putAround(text, { ...place, title: page.title, styles, script })
}

/** What all pages have, around what is the own of one. */
export function putAround(
  content: string,
  {
    title,
    styles = [],
    script,
    isInFrame = false,
    folder = '',
    windowTitle = title,
  }: Place & { readonly title: string; readonly styles?: readonly string[]; readonly script: string },
): string {
  const address = (name: string): string => escapeText(folder + name)
  const links = ['../../kit/kit.css', ...styles].map((name) => `<link rel="stylesheet" href="${address(name)}" />`)
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
    <meta name="color-scheme" content="light dark" />
    <title>${escapeText(windowTitle)}</title>
    <link rel="icon" href="/favicon.svg" />
    ${links.join('\n    ')}
    <script type="module" src="${address(script)}"></script>
  </head>
  <body>
    <header${isInFrame ? ' hidden' : ''}>
      <div class="column top">
        <h1>${escapeText(title)}</h1>
        <nav aria-label="Pages"></nav>
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
