import type { A2aContext } from '../context.ts'

export { serverMigrations } from './migrations.ts'

/** What agents and other programs elsewhere ask of agents here. */
export function addServer(_ctx: A2aContext): void {
  return undefined
}
