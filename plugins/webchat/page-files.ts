import { openConfined } from 'svc/internal'
import type { PluginStatus } from 'svc/internal'
import { Refusal, reply } from 'svc/sdk'
import type { PageDeclaration, Reply } from 'svc/sdk'

/** A larger file is not read into memory. */
const MAX_BYTES = 16_777_216

/** What pages share, in `pages/kit`. */
const KIT: ReadonlySet<string> = new Set([
  'api.js',
  'colors.css',
  'credential.js',
  'device.js',
  'dialogs.js',
  'elements.js',
  'key-entry.js',
  'kit.css',
  'kit.js',
  'live-page.js',
  'live.js',
  'login.js',
  'navigation.js',
  'owner-key.js',
  'tables.js',
])

type Plugins = readonly PluginStatus[]
interface Page {
  readonly plugin: string
  readonly title: string
  readonly group: string
  readonly url: string
}

/** The headings of the navigation, in their order; others come after them. */
const GROUPS = ['Agents', 'Automation', 'Connections', 'Operations']
const LAST_GROUP = 'More'

/** By their headings, and by title below each. */
export function listPages(plugins: Plugins): Page[] {
  const pages = plugins.flatMap(({ name, pages: declared }) =>
    declared.map((page) => ({
      plugin: name,
      title: page.title,
      group: page.group ?? LAST_GROUP,
      url: `/pages/${name}/${page.path}/${fileName(page)}`,
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
export function pageFile(
  plugins: Plugins,
  { plugin: name, page: path, file }: { readonly plugin: string; readonly page: string; readonly file: string },
): Promise<Reply> {
  const plugin = plugins.find((one) => one.name === name)
  const page = plugin?.pages.find((one) => one.path === path)
  if (!plugin || !page || (file !== fileName(page) && page.assets?.includes(file) !== true))
    throw new Refusal('not_found', `No plugin declares a page with the file ${file}`)
  return serve(plugin.folder, page.file.slice(0, -fileName(page).length) + file)
}

/** A file that pages share. */
export function kitFile(plugins: Plugins, file: string): Promise<Reply> {
  const own = plugins.find(({ name }) => name === 'webchat')
  if (!own || !KIT.has(file))
    throw new Refusal('not_found', `Pages share no file ${file}: there are ${[...KIT].join(', ')}`)
  return serve(own.folder, `pages/kit/${file}`)
}

function fileName({ file }: PageDeclaration): string {
  return file.slice(file.lastIndexOf('/') + 1)
}

async function serve(folder: string, name: string): Promise<Reply> {
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
    return reply(await handle.readFile(), { 'content-type': `${type}${charset}`, 'cache-control': 'no-cache' })
  } finally {
    await handle.close()
  }
}
