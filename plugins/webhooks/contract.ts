import { notify } from 'svc/sdk'

/** `POST /api/hooks/wake` was called. The wake is on disk when this is emitted. */
export const HookReceived = notify<{
  readonly id: string
  readonly mode: 'now' | 'next_heartbeat'
  readonly text: string
}>('webhooks:hook-received')
