import { useEffect, useRef, useState } from 'preact/hooks'
import { escapeHidden } from './approval-text.ts'
import type { Approval } from './wire.ts'

const MAX_BODY_CHARS = 300

/** Whether approvals can be shown as notifications of the browser. */
export function canNotify(): boolean {
  return permission() === 'granted'
}
/** Over plain HTTP a browser has none. */
function permission(): NotificationPermission {
  if (!isSecureContext || !('Notification' in globalThis)) return 'denied'
  return Notification.permission === 'default' && !canMakeOne() ? 'denied' : Notification.permission
}
/** Chrome on Android has only those of service workers, so there is nothing to ask the user for. */
function canMakeOne(): boolean {
  try {
    // Before it is allowed it shows nothing.
    return new Notification('', {}) instanceof Notification
  } catch {
    return false
  }
}

/** Shows new approvals as notifications while the page is not in view, once the user has allowed it. */
export function useNotifications(pending: readonly Approval[]) {
  const known = useRef<ReadonlySet<string>>(new Set())
  const [asked, setAsked] = useState(permission() !== 'default')
  useEffect(() => {
    const added = pending.filter(({ id }) => !known.current.has(id))
    known.current = new Set(pending.map(({ id }) => id))
    if (document.hidden && canNotify()) for (const approval of added) notify(approval)
  }, [pending])
  return {
    /** Whether the user was never asked. A browser asks only upon a click. */
    canAsk: !asked,
    ask(): void {
      setAsked(true)
      void Notification.requestPermission()
    },
  }
}

function notify({ id, agent_name: agent, action_summary: action }: Approval): void {
  const body = escapeHidden(action).slice(0, MAX_BODY_CHARS)
  try {
    const shown = new Notification(`${escapeHidden(agent)} needs your approval`, { body, tag: id })
    shown.addEventListener('click', () => {
      window.focus()
      shown.close()
    })
  } catch (error) {
    // It was allowed where it cannot be made; the title of the tab counts all the same.
    if (!(error instanceof TypeError)) throw error
  }
}
