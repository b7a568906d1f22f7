import { byId } from './elements.js'
import { withKey } from './key-entry.js'
import { followChanges } from './live.js'
import { showNavigation } from './navigation.js'

/**
 * As `withKey`, for a page with an element `live`: the navigation is filled, and once `load` has run the page follows what
 * changes, as `followChanges` does. `onOpen` runs then too.
 */
export function livePage({ content, submit, load, words, feeds, everyMs, onOpen, waiting }) {
  const indicator = byId('live')
  let isOpen = false
  const refresh = withKey({
    content: [...content, indicator],
    submit,
    waiting,
    async load() {
      // First: whoever cannot see this page can go to another one.
      if (!isOpen) await showNavigation()
      await load()
      if (isOpen) return
      isOpen = true
      followChanges({ words, feeds, everyMs, refresh, indicator })
      onOpen?.()
    },
  })
  return refresh
}
