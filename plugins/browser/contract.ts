import { notify } from 'svc/sdk'

/** The browser of an agent was opened or has ended. */
export const BrowserChanged = notify<{
  readonly change: 'opened' | 'closed'
  readonly agentId: string
  /** Why it ended; `null` when it was opened. */
  readonly reason: string | null
}>('browser:changed')
