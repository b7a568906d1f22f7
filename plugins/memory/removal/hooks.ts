import { DatabaseCopying } from 'svc/internal'
import type { Hooks, PluginDatabase } from 'svc/sdk'
import { AgentKilling, AgentSpawning } from '../../agents/contract.ts'
import type { OpenMemories } from '../entries/open.ts'
import { isBeingRemoved } from './store.ts'

export interface RemovalHookDeps {
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly memories: () => Promise<OpenMemories>
}

/** An agent takes its memory with it. */
export function followRemovedAgents({ db, hooks, memories }: RemovalHookDeps): void {
  hooks.on(AgentKilling, async ({ agent, statements }) => {
    const { removal } = await memories()
    return { agent, statements: [...statements, ...removal.later(agent.id)] }
  })
  // One that is made again under the id of a removed one does not get its memory.
  hooks.on(AgentSpawning, async (spawning) => {
    const { id } = spawning.agent
    if (await isBeingRemoved(db, id)) await (await memories()).removal.finish(id)
    return spawning
  })
  hooks.on(DatabaseCopying, async () => {
    if (await isBeingRemoved(db)) await (await memories()).removal.finish()
  })
}
