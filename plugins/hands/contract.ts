import { notify, transform } from 'svc/sdk'

/** An instance of a hand was made, paused, resumed, changed or removed, or a run of it failed. It is on disk. */
export const HandChanged = notify<{
  readonly change: 'activated' | 'paused' | 'resumed' | 'settings' | 'failed' | 'deactivated'
  readonly instanceId: string
  readonly handId: string
  readonly agentId: string
  /** Why a run failed. */
  readonly error: string | null
}>('hands:changed')

/** What the browser of an agent shows. */
export interface BrowserState {
  readonly url: string
  readonly title: string
  /** The text of the page. */
  readonly content: string
  /** A picture of it, base64. */
  readonly screenshot_base64: string | null
}
/** Asks the plugin that has browsers for that of an agent; `state` stays undefined when it has none. */
export const BrowserAsked = transform<{ readonly agentId: string; readonly state: BrowserState | undefined }>(
  'hands:browser-asked',
)
