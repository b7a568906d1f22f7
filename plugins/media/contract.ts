import { notify } from 'svc/sdk'
import type { MediaKind } from 'svc/providers'

/** An agent had pictures, speech or a transcript made. The files are in its workspace, and the cost is recorded. */
export const MediaCreated = notify<{
  readonly kind: MediaKind
  readonly agentId: string
  readonly turnId: string
  readonly tool: string
  readonly provider: string
  readonly model: string
  /** In the workspace; none for a transcript that was only told. */
  readonly files: readonly string[]
  /** `null` when no price is known. */
  readonly costUsd: number | null
}>('media:created')
