import { byId, call, element, showNavigation, withKey } from '../../kit/kit.js'
import { operationView } from './operation.js'

/** Of each route: what is searched, and its element. */
let routes = []

const open = withKey({
  content: [byId('find'), byId('routes')],
  submit: 'Show the routes',
  async load() {
    await showNavigation()
    draw(await call('GET', '/api/openapi.json'))
    filter()
    // Once it is in view.
    requestAnimationFrame(showLinked)
  },
})

function draw(api) {
  routes = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      group: operation.tags[0],
      words: `${method} ${path} ${operation.summary} ${operation.tags.join(' ')}`.toLowerCase(),
      view: operationView({ method, path, operation, api }),
    })),
  )
  const groups = [...Map.groupBy(routes, ({ group }) => group)].toSorted(([one], [other]) => (one < other ? -1 : 1))
  byId('group').replaceChildren(
    element('option', { value: '' }, 'All'),
    ...groups.map(([group]) => element('option', { value: group }, group)),
  )
  byId('routes').replaceChildren(
    ...groups.map(([group, list]) =>
      element(
        'section',
        { 'aria-labelledby': `group-${group}`, className: 'group' },
        element('h2', { id: `group-${group}` }, group),
        list.map(({ view }) => view),
      ),
    ),
  )
}

/** Shows the routes of the group that have every word. */
function filter() {
  const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean)
  const group = byId('group').value
  let shown = 0
  for (const route of routes) {
    const isShown = (group === '' || route.group === group) && words.every((word) => route.words.includes(word))
    route.view.hidden = !isShown
    if (isShown) shown += 1
  }
  for (const section of byId('routes').children) section.hidden = !section.querySelector('details.route:not([hidden])')
  byId('count').textContent =
    shown === 0
      ? 'No route has all of these words. Try fewer, or another group.'
      : `${shown} of ${routes.length} routes`
}

/** Opens the route that the address names. */
function showLinked() {
  const view = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)))
  if (!view || !view.matches('details.route')) return
  view.hidden = false
  view.open = true
  view.scrollIntoView()
}

byId('filter').addEventListener('input', filter)
byId('filter').addEventListener('submit', (event) => event.preventDefault())
addEventListener('hashchange', showLinked)
void open()
