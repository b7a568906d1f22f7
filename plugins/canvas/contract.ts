import { notify } from 'svc/sdk'

/** An agent shows a canvas to whoever looks at its session. It is on disk; `GET /api/canvas/{id}` reads it. */
export const CanvasPresented = notify<{
  readonly canvasId: string
  readonly agentId: string
  readonly sessionId: string
  readonly turnId: string
  readonly title: string
  /** The canvas as plain text, for those who can show nothing else. */
  readonly text: string
}>('canvas:presented')
