import { call, isSignedIn, signOut } from './api.js'
import { openDialog } from './dialogs.js'
import { element } from './elements.js'
import { isFramed } from './framed.js'

/**
 * Fills the `nav` of the header with the chat and the pages of all plugins under their headings. A wide screen shows it
 * beside the page; a narrow one opens it with a button. The page around a frame has it already.
 */
export async function showNavigation() {
  if (isFramed) return
  const { pages } = await call('GET', '/api/pages')
  const nav = document.querySelector('header nav')
  const groups = Map.groupBy(pages, ({ group }) => group)
  nav.replaceChildren(link({ title: 'Chat', url: '/' }), ...[...groups].map(([group, list]) => section(group, list)))
  if (isSignedIn()) nav.append(element('button', { type: 'button', onclick: leave }, 'Sign out'))
  document.body.classList.add('has-nav')
  nav.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  nav.before(menuButton(nav))
}

async function leave() {
  const left = await signOut()
  const open = () => location.assign('/')
  if (left === undefined) return open()
  openDialog({ title: 'This tab is signed out', content: element('p', {}, left), onClose: open })
}

function section(group, pages) {
  const id = `nav-${group.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
  return element(
    'section',
    { 'aria-labelledby': id },
    element('h2', { id }, group),
    element('ul', {}, ...pages.map((page) => element('li', {}, link(page)))),
  )
}
const link = ({ title, url }) => element('a', { href: url, 'aria-current': url === location.pathname && 'page' }, title)

/** Where there is no room beside the page. */
function menuButton(nav) {
  const known = document.querySelector('header .menu-button')
  known?.remove()
  nav.id ||= 'pages'
  const button = element('button', { type: 'button', className: 'menu-button', 'aria-controls': nav.id }, 'Menu')
  const toggle = (isOpen) => {
    nav.classList.toggle('open', isOpen)
    button.setAttribute('aria-expanded', String(isOpen))
    if (isOpen) nav.querySelector('a').focus()
  }
  button.addEventListener('click', () => toggle(!nav.classList.contains('open')))
  nav.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !nav.classList.contains('open')) return
    toggle(false)
    button.focus()
  })
  toggle(false)
  return button
}
