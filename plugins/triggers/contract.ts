import { defineService, notify } from 'svc/sdk'

/** Triggers that come from elsewhere. */
export interface TriggerImports {
  /**
   * Makes one, as `POST /api/triggers` does. `false` when there is one of this id, which stays as it is. Throws
   * `invalid_request` that names the field, `agent_not_found`, `conflict` when there are too many. `isCheck` makes nothing, and
   * asks for no agent.
   */
  add(id: string, body: Readonly<Record<string, unknown>>, options?: { readonly isCheck?: boolean }): Promise<boolean>
}
export const TriggerImports = defineService<TriggerImports>()('trigger-imports')

/** A trigger fired for an event: its agent will be asked, or its workflow run. It is on disk. */
export const TriggerFired = notify<{
  readonly triggerId: string
  readonly firingId: string
  readonly agentId: string
  /** Such as `agent_spawned`. */
  readonly eventKind: string
  /** The same for all triggers that fire for the event. */
  readonly eventId: string
  /** 1 for an event that no trigger caused, 2 for one that a trigger's turn caused, and so on. */
  readonly depth: number
}>('triggers:fired')

/** What a trigger fired for has ended. It is on disk. */
export const FiringEnded = notify<{
  readonly triggerId: string
  readonly firingId: string
  readonly agentId: string
  readonly state: 'done' | 'failed' | 'held_back' | 'cancelled'
  readonly turnId: string | null
  /** Why it failed or was held back. */
  readonly error: string | null
}>('triggers:firing-ended')

/** A trigger was disabled by the daemon, not by a person. */
export const TriggerDisabled = notify<{
  readonly triggerId: string
  readonly agentId: string
  readonly reason: string
}>('triggers:disabled')
