import { defineService, notify } from 'svc/sdk'

/**
 * - `ready`: its MCP server works, or starts with the first use.
 * - `setup`: somebody has to sign in before it works.
 * - `available`: it is in the catalogue and was not added.
 * - `error`: its MCP server does not work.
 * - `disabled`: its MCP server is switched off.
 */
export type IntegrationState = 'ready' | 'setup' | 'available' | 'error' | 'disabled'

/** An entry of the catalogue, or an integration that was added from one. */
export interface IntegrationEntry {
  readonly id: string
  /** The entry of the catalogue it was made from; its own id for the entry itself. */
  readonly template: string
  readonly name: string
  readonly description: string
  readonly category: string
  readonly icon: string
  readonly tags: readonly string[]
  readonly state: IntegrationState
  readonly installed: boolean
  readonly toolCount: number
  /** ISO 8601 UTC; `null` when it was not added. */
  readonly installedAt: string | null
  /** Names of the variables it needs. */
  readonly requiredEnv: readonly string[]
  readonly hasOauth: boolean
  readonly setupInstructions: string
  /** Why it does not work; `null` when it does. */
  readonly error: string | null
}

/** A request to add one. */
export interface IntegrationRequest {
  /** The entry of the catalogue. */
  readonly template: string
  /** What it is called; the name of the entry when absent. */
  readonly name?: string | undefined
  /** Value of its first required secret. */
  readonly token?: string | undefined
  /** Values of its variables, by name. */
  readonly credentials?: Readonly<Record<string, string>> | undefined
}

/** The catalogue of integrations, for those who show it beside other things. */
export interface Integrations {
  /** What was added, then the entries of the catalogue that were not. */
  entries(): Promise<readonly IntegrationEntry[]>
  /** What was added under this id, or the entry of the catalogue. */
  entry(id: string): Promise<IntegrationEntry | undefined>
  /** Settles when its MCP server works or waits for a login; throws why not and leaves nothing. */
  add(request: IntegrationRequest): Promise<IntegrationEntry>
  /** Removes its MCP server with its secrets. Throws `integration_not_found`. */
  remove(id: string): Promise<void>
}
export const Integrations = defineService<Integrations>()('integrations')

/** One was added or removed, or it stopped working for as often as its template allows, or works again. */
export const IntegrationChanged = notify<{
  readonly id: string
  readonly template: string
  readonly change: 'added' | 'removed' | 'unhealthy' | 'recovered'
  /** The failure of an unhealthy one. */
  readonly error: string | null
}>('integrations:changed')
