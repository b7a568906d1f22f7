import type { Migration } from 'svc/sdk'
import type { A2aContext } from '../context.ts'

export const clientMigrations: readonly Migration[] = []

/** What agents here ask of agents elsewhere. */
export function addClient(_ctx: A2aContext): void {
  return undefined
}
