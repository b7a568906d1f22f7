import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { ToolCall } from './transcript.ts'
import type { Canvas } from './wire.ts'

/** Reads a canvas of the daemon. */
export const CanvasReader = createContext<((id: string) => Promise<Canvas>) | undefined>(undefined)

const shown = /^Shown as canvas ([0-9a-f-]{36}) /
/** The canvas that a call of a tool showed. */
export function canvasIdOf({ name, state, result }: ToolCall): string | undefined {
  return name === 'canvas_present' && state === 'done' ? shown.exec(result ?? '')?.[1] : undefined
}

/** What an agent shows, in a frame without an origin in which nothing runs and from which nothing is loaded. */
export function CanvasFrame({ id }: { readonly id: string }) {
  const read = useContext(CanvasReader)
  const [canvas, setCanvas] = useState<Canvas | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [isLarge, setLarge] = useState(false)
  useEffect(() => {
    let isGone = false
    read?.(id).then(
      (found) => {
        if (!isGone) setCanvas(found)
      },
      (error: unknown) => {
        if (!isGone) setProblem(explain(error))
      },
    )
    return () => {
      isGone = true
    }
  }, [id, read])
  if (problem !== undefined) return <p class="aside">The canvas cannot be shown: {problem}</p>
  if (!canvas) return null
  return (
    <figure class={isLarge ? 'canvas large' : 'canvas'}>
      <figcaption>
        <span>{canvas.title}</span>
        <button type="button" aria-pressed={isLarge} onClick={() => setLarge(!isLarge)}>
          {isLarge ? 'Smaller' : 'Larger'}
        </button>
      </figcaption>
      <iframe sandbox="" referrerpolicy="no-referrer" src={canvas.frame_url} title={canvas.title} />
    </figure>
  )
}
