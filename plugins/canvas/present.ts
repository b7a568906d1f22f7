import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { idempotencyKey, Refusal } from 'svc/sdk'
import type { Hooks, ToolCallContext } from 'svc/sdk'
import { CanvasPresented } from './contract.ts'
import { canvasText, sanitizeCanvas } from './sanitize.ts'
import type { CanvasRow, CanvasStore } from './store.ts'

export interface CanvasDeps {
  readonly store: CanvasStore
  readonly hooks: Pick<Hooks, 'emit'>
  readonly maxHtmlBytes: number
  readonly keptPerSession: number
}

/** Sanitises and stores a canvas, and tells whoever shows it. */
export async function presentCanvas(
  { store, hooks, maxHtmlBytes, keptPerSession }: CanvasDeps,
  input: { readonly html: string; readonly title: string },
  call: ToolCallContext,
): Promise<string> {
  const bytes = Buffer.byteLength(input.html)
  if (bytes > maxHtmlBytes)
    throw new Refusal(
      'payload_too_large',
      `html: ${bytes} bytes, and a canvas has at most ${maxHtmlBytes} ([plugins.canvas] max_html_bytes)`,
    )
  const html = sanitizeCanvas(input.html)
  if (html === '')
    throw new Refusal('invalid_request', 'html: nothing is left of it without scripts, forms and what is loaded')
  const { agentId, sessionId, turnId } = call
  const id = idempotencyKey(call)
  const row: CanvasRow = {
    id,
    agent_id: agentId,
    session_id: sessionId,
    turn_id: turnId,
    title: input.title,
    html,
    frame_key: randomBytes(32).toString('base64url'),
    created_at: new Date().toISOString(),
  }
  await store.add(row, keptPerSession)
  await hooks.emit(CanvasPresented, {
    canvasId: id,
    agentId,
    sessionId,
    turnId,
    title: input.title,
    text: canvasText(html),
  })
  return shownText(id)
}

/** What the agent is told; a page finds the canvas by the id. */
export const shownText = (id: string): string =>
  `Shown as canvas ${id} on the chat page. Somebody who reads elsewhere, such as in a chat channel, does not see it: ` +
  'say what matters in your answer too.'

/** How long an address of the frame is good for. */
const FRAME_MS = 600_000

/** The address of the frame: it has to be told, because a frame cannot send a key, and it ends soon. */
export function frameUrl({ id, frame_key: key }: CanvasRow, now: number): string {
  const until = (now + FRAME_MS).toString(36)
  return `/canvas/${id}/${until}.${sign(key, id, until)}`
}
/** Whether an address is one that was given out, and not long ago. */
export function isFrameOf({ id, frame_key: key }: CanvasRow, pass: string, now: number): boolean {
  const [until = '', signature = ''] = pass.split('.')
  const expected = Buffer.from(sign(key, id, until))
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected) && Number.parseInt(until, 36) > now
}
const sign = (key: string, id: string, until: string): string =>
  createHmac('sha256', key).update(`${id} ${until}`).digest('base64url')

/** The document that the frame shows. */
export function frameDocument({ title, html }: CanvasRow): string {
  const name = title.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
  return (
    `<!doctype html><html><head><meta charset="utf-8"><title>${name}</title><style>:root{color-scheme:light dark}` +
    `body{font:15px/1.5 system-ui,sans-serif;margin:1rem}img{max-width:100%}</style></head><body>${html}</body></html>`
  )
}
