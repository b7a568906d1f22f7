import { notify } from 'svc/sdk'

/** Somebody outside woke the daemon (`POST /api/hooks/wake`). It is on disk when this is told. */
export const HookReceived = notify<{
  readonly id: string
  readonly mode: 'now' | 'next_heartbeat'
  readonly text: string
}>('webhooks:hook-received')
