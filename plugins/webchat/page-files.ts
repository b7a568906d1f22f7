import { documentOf, framedFile, openConfined, putAround } from 'svc/internal'
import type { PluginStatus } from 'svc/internal'
import { Refusal, reply } from 'svc/sdk'
import type { FilePage, PageDeclaration, Reply } from 'svc/sdk'

/** A larger file is not read into memory. */
const MAX_BYTES = 16_777_216

/** What pages share, in `pages/kit`. */
const KIT: ReadonlySet<string> = new Set([
  'address.js',
  'api.js',
  'colors.css',
  'credential.js',
  'device.js',
  'dialogs.js',
  'elements.js',
  'frame.js',
  'framed.js',
  'key-entry.js',
  'kit.css',
  'kit.js',
  'live-page.js',
  'live.js',
  'login.js',
  'navigation.js',
  'owner-key.js',
  'table-page.js',
  'tables.js',
])

type Plugins = readonly PluginStatus[]
export interface PageFile {
  readonly plugin: string
  readonly page: string
  readonly file: string
}
interface Page {
  readonly plugin: string
  readonly title: string
  readonly group: string
  readonly url: string
}

/** The headings of the navigation, in their order; others come after them. */
const GROUPS = ['Agents', 'Automation', 'Connections', 'Operations']
const LAST_GROUP = 'More'

/** Of a page that a script of the kit draws. */
const PLACE = '<div id="page" class="stack" hidden></div>\n'

/** By their headings, and by title below each. */
export function listPages(plugins: Plugins): Page[] {
  const pages = plugins.flatMap(({ name, pages: declared }) =>
    declared.map((page) => ({
      plugin: name,
      title: page.title,
      group: page.group ?? LAST_GROUP,
      url: ('url' in page ? page.url : undefined) ?? `/pages/${name}/${page.path}/${fileName(page)}`,
    })),
  )
  return pages.toSorted(
    (one, other) => placeOf(one) - placeOf(other) || compare(one.group, other.group) || compare(one.title, other.title),
  )
}
function placeOf({ group }: Page): number {
  if (group === LAST_GROUP) return GROUPS.length + 1
  const place = GROUPS.indexOf(group)
  return place === -1 ? GROUPS.length : place
}
const compare = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1)

/** A file that a plugin declares for a page. */
export async function pageFile(plugins: Plugins, { plugin: name, page: path, file }: PageFile): Promise<Reply> {
  const { plugin, page } = findPage(plugins, name, path)
  // Whatever is served here can read the key: of a plugin that is not trusted it is only the frame around its page.
  if (file === fileName(page) && (!hasFile(page) || isFramed(plugin))) {
    const script = hasFile(page) ? 'frame.js' : 'table-page.js'
    return served(htmlOf(await putAround(PLACE, { title: page.title, script: `/pages/kit/${script}` })))
  }
  if (!hasFile(page) || isFramed(plugin)) throw noFile(file)
  return served(await readPage(plugin, page, file))
}

/** A file of a page that is shown in a frame. */
export async function fileInFrame(plugins: Plugins, params: PageFile): Promise<Reply> {
  const { plugin, page } = findPage(plugins, params.plugin, params.page)
  if (!hasFile(page) || !isFramed(plugin)) throw noFile(params.file)
  return inFrame(await readPage(plugin, page, params.file))
}

/** A file that pages share. */
export function kitFile(plugins: Plugins, file: string): Promise<Reply> {
  checkKit(file)
  return serveKit(plugins, file)
}

/** The same for pages in frames, while there are any: other sites can see whether this is served. */
export async function kitFileInFrame(plugins: Plugins, file: string): Promise<Reply> {
  checkKit(file)
  if (!plugins.some((plugin) => isFramed(plugin) && plugin.pages.length > 0)) throw noFile(file)
  return inFrame(await read(kitFolder(plugins), `pages/kit/${file}`))
}

/** What the page around a frame, and one without HTML, need to know. */
export function describePage(plugins: Plugins, params: Omit<PageFile, 'file'>) {
  const { plugin, page } = findPage(plugins, params.plugin, params.page)
  const { title } = page
  if (!hasFile(page)) {
    const actions = (page.actions ?? []).map((action) => ({
      dangerous: false,
      ...action,
      fields: [...(action.fields ?? [])],
    }))
    const table = { ...page.table, columns: [...page.table.columns] }
    return { plugin: plugin.name, title, frame_url: null, table, actions }
  }
  const frame = isFramed(plugin) ? `/frames/${plugin.name}/${page.path}/${fileName(page)}` : null
  return { plugin: plugin.name, title, frame_url: frame, table: null, actions: [] }
}

/** Code that runs in a process of its own is not trusted, and neither is its page. */
const isFramed = ({ isolation }: PluginStatus): boolean => isolation === 'worker'
const noFile = (file: string): Refusal => new Refusal('not_found', `No plugin declares a page with the file ${file}`)

function findPage(plugins: Plugins, name: string, path: string) {
  const plugin = plugins.find((one) => one.name === name)
  const page = plugin?.pages.find((one) => one.path === path)
  if (!plugin || !page) throw new Refusal('not_found', `No plugin declares the page ${name}/${path}`)
  return { plugin, page }
}

/** In the folder of the plugin. */
function declaredFile(page: FilePage, file: string): string {
  if (file !== fileName(page) && page.assets?.includes(file) !== true) throw noFile(file)
  return page.file.slice(0, -fileName(page).length) + file
}

function checkKit(file: string): void {
  if (!KIT.has(file)) throw new Refusal('not_found', `Pages share no file ${file}: there are ${[...KIT].join(', ')}`)
}
const serveKit = (plugins: Plugins, file: string): Promise<Reply> => serve(kitFolder(plugins), `pages/kit/${file}`)
function kitFolder(plugins: Plugins): string {
  const own = plugins.find(({ name }) => name === 'webchat')
  if (!own) throw new Refusal('service_unavailable', 'The pages are being loaded')
  return own.folder
}

const hasFile = (page: PageDeclaration): page is FilePage => 'file' in page && page.file !== undefined
function fileName(page: PageDeclaration): string {
  return hasFile(page) ? page.file.slice(page.file.lastIndexOf('/') + 1) : 'index.html'
}

const serve = async (folder: string, name: string): Promise<Reply> => served(await read(folder, name))
const served = ({ bytes, type }: Content): Reply => reply(bytes, { 'content-type': type, 'cache-control': 'no-cache' })
const inFrame = ({ bytes, type }: Content): Reply => framedFile(bytes, type)

interface Content {
  readonly bytes: Uint8Array
  readonly type: string
}
/** A file of a page; the page itself with what all pages have around it. */
async function readPage(plugin: PluginStatus, page: FilePage, file: string): Promise<Content> {
  const { bytes, type } = await read(plugin.folder, declaredFile(page, file))
  if (file !== fileName(page)) return { bytes, type }
  const text = new TextDecoder().decode(bytes)
  return htmlOf(await documentOf(page, file, text, { isInFrame: isFramed(plugin) }))
}
const htmlOf = (text: string): Content => ({
  bytes: new TextEncoder().encode(text),
  type: 'text/html; charset=utf-8',
})
async function read(folder: string, name: string): Promise<Content> {
  const { default: mime } = await import('mime')
  const handle = await openConfined(folder, name, 'read').catch((cause: unknown) => {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause
    throw new Refusal('not_found', `The plugin declares the file ${name}, and it does not exist`, { cause })
  })
  try {
    const { size } = await handle.stat()
    if (size > MAX_BYTES) throw new Refusal('not_found', `${name} is larger than ${MAX_BYTES} bytes`)
    const type = mime.getType(name) ?? 'application/octet-stream'
    const charset = /^text\/|\/(?:javascript|json)$/.test(type) ? '; charset=utf-8' : ''
    return { bytes: await handle.readFile(), type: `${type}${charset}` }
  } finally {
    await handle.close()
  }
}
