import { byId } from './elements.js'
import { withKey } from './key-entry.js'
import { followChanges } from './live.js'
import { showNavigation } from './navigation.js'

/**
 * As `withKey`, for a page with an element `live`: once `load` has run, the navigation is filled and the page follows what
 * changes, as `followChanges` does. `onOpen` runs then too.
 */
export function livePage({ content, submit, load, words, everyMs, onOpen }) {
  const indicator = byId('live')
  let isOpen = false
  const refresh = withKey({
    content: [...content, indicator],
    submit,
    async load() {
      await load()
      if (isOpen) return
      isOpen = true
      void showNavigation()
      followChanges({ words, everyMs, refresh, indicator })
      onOpen?.()
    },
  })
  return refresh
}
