import { useEffect, useState } from 'preact/hooks'
import type { Connection, Link } from './connection.ts'

const words: Readonly<Record<Link['state'], string>> = {
  closed: 'Not connected',
  connecting: 'Connecting',
  open: 'Connected',
  http: 'Connected over HTTP',
  lost: 'Reconnecting',
}

export function LinkState({ link }: { readonly link: Link }) {
  return (
    <p class={`link ${link.state}`} role="status">
      <span class="link-dot" aria-hidden="true" />
      {words[link.state]}
    </p>
  )
}

/** Above the message box while the daemon cannot be reached. */
export function LostBanner({
  link,
  connection,
}: {
  readonly link: Extract<Link, { state: 'lost' }>
  readonly connection: Connection
}) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.ceil((link.retryAtMs - now) / 1000))
  return (
    <div class="lost-banner">
      <p>
        The connection to the daemon is lost.{' '}
        <span aria-hidden="true">{seconds > 0 ? `Trying again in ${seconds} s.` : 'Trying again.'}</span>
      </p>
      <button type="button" onClick={() => connection.retryNow()}>
        Try now
      </button>
    </div>
  )
}
