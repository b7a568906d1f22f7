import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute, Principal } from 'svc/sdk'
import type { Memories } from '../contract.ts'
import { readerOf } from '../entries/reader.ts'
import type { MemoryUses } from './store.ts'

export interface UseRouteDeps {
  readonly uses: () => Promise<MemoryUses>
  readonly memories: Pick<Memories, 'find'>
}

const MAX_TURNS = 100
const turnIds = v.pipe(
  v.string(),
  v.transform((text) => text.split(',')),
  v.array(v.pipe(v.string(), v.uuid('Expected turn IDs with commas between them'))),
  v.maxLength(MAX_TURNS, `Expected at most ${MAX_TURNS} turn IDs`),
)
/** Whose turns a caller may ask about: the operator those of everybody, anybody else their own. */
function userOf(principal: Principal): string | undefined {
  const reader = readerOf(principal)
  return reader.kind === 'person' ? (reader.userId ?? '') : undefined
}

/** Below an answer the page shows how many memories it was given, and which. */
export function useRoutes(deps: UseRouteDeps): readonly AnyRoute[] {
  return [countRoute(deps), readRoute(deps)]
}

function countRoute({ uses }: Pick<UseRouteDeps, 'uses'>): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/memory/turns',
    summary: 'How many memories were part of the prompts of turns',
    description: `\`turn_ids\` are at most ${MAX_TURNS} with commas between them. Turns without a memory are left out.`,
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: v.object({ turn_ids: turnIds }),
    returns: v.object({ turns: v.array(v.object({ turn_id: v.string(), memories: v.number() })) }),
    async handle({ query, principal }) {
      const found = await (await uses()).find(query.turn_ids, userOf(principal))
      return { turns: [...found].map(([turnId, ids]) => ({ turn_id: turnId, memories: ids.length })) }
    },
  })
}

function readRoute({ uses, memories }: UseRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/memory/turns/:turn_id',
    summary: 'The memories that were part of the prompt of a turn',
    description:
      '`memories` is empty when the agent knew nothing that fits, or did not look. ' +
      '`forgotten` counts those that were deleted since.',
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
      const ids = (await (await uses()).find([turnId], userOf(principal))).get(turnId) ?? []
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
}
