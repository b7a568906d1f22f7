import * as v from 'valibot'
import { sandboxedDocument } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { CanvasRow, CanvasStore } from './store.ts'

const Id = v.pipe(v.string(), v.uuid('Invalid canvas ID'), v.toLowerCase())
const Canvas = v.object({
  canvas_id: v.string(),
  agent_id: v.string(),
  session_id: v.string(),
  turn_id: v.string(),
  title: v.string(),
  html: v.string(),
  text: v.string(),
  /** Where a page may show it in a frame, for ten minutes. */
  frame_url: v.string(),
  created_at: v.string(),
})

export function canvasRoutes(store: CanvasStore): readonly AnyRoute[] {
  const notFound = (id: string): Refusal => new Refusal('not_found', `No canvas ${id}`)
  const read = defineRoute({
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
  const frame = defineRoute({
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
  return [read, frame]
}

async function view(row: CanvasRow): Promise<v.InferOutput<typeof Canvas>> {
  const { frameUrl } = await import('./present.ts')
  const { canvasText } = await import('./sanitize.ts')
  return {
    canvas_id: row.id,
    agent_id: row.agent_id,
    session_id: row.session_id,
    turn_id: row.turn_id,
    title: row.title,
    html: row.html,
    text: canvasText(row.html),
    frame_url: frameUrl(row, Date.now()),
    created_at: row.created_at,
  }
}
