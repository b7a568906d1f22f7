import { byId, show, showNavigation } from '../../kit/kit.js'
import { addCopyButton } from './copy.js'

for (const block of document.querySelectorAll('article pre')) addCopyButton(block)
if (matchMedia('(max-width: 800px)').matches) byId('contents').open = false
byId('search').value = new URLSearchParams(location.search).get('q') ?? ''

try {
  await showNavigation()
} catch (error) {
  // The guide is there for everybody; the list of pages needs the key.
  if (error.status !== 401) show('problem', error.message)
}
