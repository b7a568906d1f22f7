import * as v from 'valibot'
import { sandboxedDocument } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { CanvasRow, CanvasStore, CanvasSummary } from './store.ts'

const Id = v.pipe(v.string(), v.uuid('Invalid canvas ID'), v.toLowerCase())
const summary = {
  canvas_id: v.string(),
  agent_id: v.string(),
  session_id: v.string(),
  turn_id: v.string(),
  title: v.string(),
  created_at: v.string(),
}
const Canvas = v.object({
  ...summary,
  html: v.string(),
  text: v.string(),
  /** Where a page may show it in a frame, for ten minutes. */
  frame_url: v.string(),
})
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const whole = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
const ListQuery = v.object({
  agent_id: v.optional(v.pipe(v.string(), v.uuid('Invalid agent ID'), v.toLowerCase())),
  session_id: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(100))),
  limit: v.optional(whole),
  offset: v.optional(whole),
})

export function canvasRoutes(store: CanvasStore): readonly AnyRoute[] {
  return [listCanvases(store), readCanvas(store), removeCanvas(store), showFrame(store)]
}
const notFound = (id: string): Refusal => new Refusal('not_found', `No canvas ${id}`)

function listCanvases(store: CanvasStore): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/canvas',
    summary: 'Canvases that agents showed, the newest first',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: v.object({ items: v.array(v.object(summary)), total: v.number(), offset: v.number(), limit: v.number() }),
    async handle({ query }) {
      const limit = Math.min(Number(query.limit ?? DEFAULT_LIMIT), MAX_LIMIT)
      const offset = Number(query.offset ?? 0)
      const filter = { agentId: query.agent_id, sessionId: query.session_id }
      const [rows, total] = await Promise.all([store.list(filter, limit, offset), store.count(filter)])
      return { items: rows.map(summaryOf), total, offset, limit }
    },
  })
}

function readCanvas(store: CanvasStore): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/canvas/:id',
    summary: 'Read a canvas that an agent showed',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    params: v.object({ id: Id }),
    returns: Canvas,
    errors: ['not_found'],
    async handle({ params }) {
      const row = await store.find(params.id)
      if (!row) throw notFound(params.id)
      return view(row)
    },
  })
}

function removeCanvas(store: CanvasStore): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/canvas/:id',
    summary: 'Delete a canvas',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: v.object({ id: Id }),
    returns: v.object({ status: v.literal('deleted'), canvas_id: v.string() }),
    errors: ['not_found'],
    async handle({ params: { id } }) {
      if (!(await store.find(id))) throw notFound(id)
      await store.remove(id)
      return { status: 'deleted' as const, canvas_id: id }
    },
  })
}

function showFrame(store: CanvasStore): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/canvas/:id/:pass',
    summary: 'A canvas as a document that runs and loads nothing, for a frame of the chat page',
    auth: 'public',
    effect: 'read',
    cost: 1,
    params: v.object({ id: Id, pass: v.pipe(v.string(), v.maxLength(100)) }),
    returns: v.unknown(),
    produces: 'text/html',
    errors: ['not_found'],
    async handle({ params }) {
      const row = await store.find(params.id)
      const { frameDocument, isFrameOf } = await import('./present.ts')
      if (!row || !isFrameOf(row, params.pass, Date.now())) throw notFound(params.id)
      return sandboxedDocument(frameDocument(row))
    },
  })
}

async function view(row: CanvasRow): Promise<v.InferOutput<typeof Canvas>> {
  const { frameUrl } = await import('./present.ts')
  const { canvasText } = await import('./sanitize.ts')
  return {
    ...summaryOf(row),
    html: row.html,
    text: canvasText(row.html),
    frame_url: frameUrl(row, Date.now()),
  }
}
const summaryOf = ({ id, ...row }: CanvasSummary) => ({
  canvas_id: id,
  agent_id: row.agent_id,
  session_id: row.session_id,
  turn_id: row.turn_id,
  title: row.title,
  created_at: row.created_at,
})
