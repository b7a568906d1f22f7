import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Memories } from '../contract.ts'
import { readerOf } from '../entries/access.ts'
import type { MemoryUses } from './store.ts'

export interface UseRouteDeps {
  readonly uses: () => Promise<MemoryUses>
  readonly memories: Pick<Memories, 'find'>
}

/** The page shows below an answer which memories it was given. */
export function useRoutes({ uses, memories }: UseRouteDeps): readonly AnyRoute[] {
  const read = defineRoute({
    method: 'GET',
    path: '/api/memory/turns/:turn_id',
    summary: 'The memories that were part of the prompt of a turn',
    description:
      '`memories` is empty when the agent knew nothing that fits, or did not look. ' +
      '`forgotten` counts those that were deleted since, and those of other people.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: v.object({ turn_id: v.pipe(v.string(), v.uuid('Invalid turn ID')) }),
    returns: v.object({
      turn_id: v.string(),
      memories: v.array(
        v.object({
          id: v.string(),
          content: v.string(),
          source: v.string(),
          created_at: v.string(),
          confidence: v.number(),
        }),
      ),
      forgotten: v.number(),
    }),
    async handle({ params, principal }) {
      const { turn_id: turnId } = params
      const ids = (await (await uses()).find(turnId))?.ids ?? []
      const { sourceOf } = await import('./retrieve.ts')
      const reader = readerOf(principal)
      const found = await Promise.all(ids.map((id) => memories.find(id, reader)))
      const shown = found.flatMap((memory) =>
        memory
          ? {
              id: memory.id,
              content: memory.content,
              source: sourceOf(memory.source),
              created_at: memory.createdAt,
              confidence: memory.confidence,
            }
          : [],
      )
      return { turn_id: turnId, memories: shown, forgotten: ids.length - shown.length }
    },
  })
  return [read]
}
