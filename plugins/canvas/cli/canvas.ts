import * as v from 'valibot'
import { clientArgs, commandLine, exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const PAGE = 1_000
const Listed = v.looseObject({
  canvas_id: v.string(),
  agent_id: v.string(),
  session_id: v.string(),
  title: v.string(),
  created_at: v.string(),
})
export type Listed = v.InferOutput<typeof Listed>
const Page = v.looseObject({ items: v.array(Listed), total: v.number() })
export const Canvas = v.looseObject({ ...Listed.entries, html: v.string(), text: v.string() })

/** All of them, the newest first; `query` filters, such as `agent_id=…`. */
export async function listCanvases(client: DaemonClient, query = ''): Promise<readonly Listed[]> {
  const found: Listed[] = []
  for (;;) {
    const page = await client.call('GET', `/api/canvas?limit=${PAGE}&offset=${found.length}&${query}`, Page)
    found.push(...page.items)
    if (page.items.length === 0 || found.length >= page.total) return found
  }
}

/** The id of a canvas by the id or the beginning of it. Throws a `Failure`. */
export async function requireCanvasId(client: DaemonClient, text: string): Promise<string> {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase()
  const ids = (await listCanvases(client)).map(({ canvas_id: id }) => id)
  const found = ids.filter((id) => text !== '' && id.startsWith(text.toLowerCase()))
  if (found[0] !== undefined && found.length === 1) return found[0]
  if (found.length > 1)
    throw new Failure(exits.usage, `"${text}" is ${found.length} canvases`, `give an id: ${found.join(', ')}`)
  throw new Failure(
    exits.notFound,
    `there is no canvas "${text}"`,
    `${commandLine('canvas list')} shows those there are`,
  )
}

export const canvasArgs = {
  canvas: { type: 'positional', required: true, description: 'Id of the canvas, or the beginning of it' },
  ...clientArgs,
} as const
