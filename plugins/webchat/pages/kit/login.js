import { openDialog } from './dialogs.js'
import { element } from './elements.js'

const POLL_MS = 1000

/**
 * Opens a dialog with a link to a login on another page, and refreshes every second until it is closed: by the person, or
 * by the page when it finds that somebody has logged in.
 */
export function openLogin({ title, hint, link, url, refresh, onClose }) {
  const timer = setInterval(refresh, POLL_MS)
  return openDialog({
    title,
    content: [
      element('p', {}, hint),
      element('p', {}, element('a', { href: url, target: '_blank', rel: 'noreferrer noopener' }, link)),
    ],
    onClose() {
      clearInterval(timer)
      onClose()
      void refresh()
    },
  })
}
