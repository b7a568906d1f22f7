import { call, callFor } from './api.js'
import { byId, element } from './elements.js'
import { withKey } from './key-entry.js'
import { showNavigation } from './navigation.js'

// The page around that of a plugin which is not trusted. That one is in a frame without an origin: it has no key, and can
// make no request. It asks this page, which sends what goes to a route of the same plugin, and nothing else.

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const [, , plugin, path] = location.pathname.split('/')
let frame

const refresh = withKey({
  content: [byId('page')],
  submit: 'Show the page',
  async load() {
    const { title, frame_url: src } = await call('GET', `/api/pages/${plugin}/${path}`)
    await showNavigation()
    frame = element('iframe', { sandbox: 'allow-scripts allow-forms', src, title })
    byId('page').replaceChildren(
      element('p', { className: 'hint' }, hint(plugin)),
      element('div', { className: 'frame' }, frame),
    )
  },
})
const hint = (name) =>
  `This is a page of the plugin “${name}”, which runs apart from the daemon. It can use what this plugin offers, and nothing else. Enter no key in it.`

addEventListener('message', async ({ source, data }) => {
  // A frame in the frame, and other windows, are nobody's page.
  if (!frame || source !== frame.contentWindow) return
  source.postMessage({ id: data?.id, ...(await answer(data)) }, '*')
})

async function answer(request) {
  try {
    return { answer: await callFor(plugin, readRequest(request)) }
  } catch (error) {
    // The frame comes back once the key is given.
    if (error.status === 401) void refresh()
    return { error: { status: error.status ?? 400, message: error.message, issues: error.issues ?? [] } }
  }
}

/** Throws what is wrong with it. */
function readRequest(request) {
  const { method, path: target, body } = request ?? {}
  if (!METHODS.includes(method)) throw new Error(`The method must be one of ${METHODS.join(', ')}`)
  const url = typeof target === 'string' && URL.parse(target, location.origin)
  if (!url || url.origin !== location.origin)
    throw new Error('The path must be one of this daemon, such as /api/weather')
  return { method, path: url.pathname + url.search, body }
}

void refresh()
