import { call } from './api.js'
import { element } from './elements.js'

/** Fills the `nav` of the page with the chat and the pages of all plugins. */
export async function showNavigation() {
  const { pages } = await call('GET', '/api/pages')
  const links = [{ title: 'Chat', url: '/' }, ...pages].map(({ title, url }) =>
    element('a', { href: url, 'aria-current': url === location.pathname && 'page' }, title),
  )
  document.querySelector('header nav').replaceChildren(...links)
}
