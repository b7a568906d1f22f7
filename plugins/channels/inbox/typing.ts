import type { Destination } from 'svc/channels'
import type { Clock } from 'svc/internal'
import type { OpenConnection } from '../connections/connections.ts'

export interface TypingDeps {
  readonly clock: Clock
  readonly connection: () => OpenConnection | undefined
  readonly background: (work: () => Promise<void>) => void
  /** A failed indicator is not worth more than a line of the log. */
  readonly failed: (error: unknown) => void
}

/** What is answered sooner needs no indicator, which costs a request that platforms count among those they allow. */
const FIRST_MS = 500

/** Shows the typing indicator after a moment, again and again, until the returned function is called. */
export function showTyping({ clock, connection, background, failed }: TypingDeps, to: Destination): () => void {
  let hasEnded = false
  const show = (): void => {
    const open = connection()
    const { typing } = open?.adapter.capabilities ?? {}
    if (hasEnded || !open?.connection.typing || !typing) return
    background(async () => {
      try {
        await open.connection.typing?.(to)
      } catch (error) {
        failed(error)
      }
    })
    cancel = clock.after(typing.repeatMs, show)
  }
  let cancel = clock.after(FIRST_MS, show)
  return () => {
    hasEnded = true
    cancel()
  }
}
