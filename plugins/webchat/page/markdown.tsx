import DOMPurify from 'dompurify'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { converter } from './convert.ts'
import { dress } from './rich-text.ts'
import { isTame, toHtml } from './to-html.ts'
import { typesetWhenVisible } from './typeset.ts'

/** The second wall behind the renderer of `to-html.ts`: only what its output can hold comes through. */
const allowed = {
  ALLOWED_TAGS: [
    'a',
    'b',
    'blockquote',
    'br',
    'code',
    'del',
    'em',
    'h3',
    'h4',
    'h5',
    'h6',
    'hr',
    'i',
    'img',
    'input',
    'ins',
    'kbd',
    'li',
    'mark',
    'ol',
    'p',
    'pre',
    's',
    'strong',
    'sub',
    'sup',
    'table',
    'tbody',
    'td',
    'th',
    'thead',
    'tr',
    'u',
    'ul',
  ],
  ALLOWED_ATTR: [
    'align',
    'alt',
    'checked',
    'data-language',
    'data-math',
    'disabled',
    'href',
    'src',
    'start',
    'title',
    'type',
  ],
  // Checked against the pattern below are only the attributes that hold an address.
  ADD_URI_SAFE_ATTR: ['align', 'checked', 'data-language', 'data-math', 'disabled', 'start', 'type'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp|avif);base64,)/i,
  RETURN_DOM_FRAGMENT: true as const,
}

/** Time that drawing may take of one frame. */
const frameMs = 8
/** Of a text that is shown as it is written, per piece. */
const plainChars = 20_000
/** What a piece is when it is no HTML. */
interface Plain {
  readonly plain: string
}
type Piece = string | Plain

let nextId = 1

/**
 * Text of an agent, drawn as Markdown. While it grows only what changed is drawn again, and no text holds the page up.
 */
export function Markdown({ text, growing }: { readonly text: string; readonly growing: boolean }) {
  const pieces = usePieces(text)
  const count = useGradually(pieces.length)
  return (
    <div class={growing ? 'prose growing' : 'prose'} aria-busy={count < pieces.length}>
      {pieces.slice(0, count).map((piece, at) => (
        <Block key={at} piece={piece} settled={!growing || at < pieces.length - 1} />
      ))}
    </div>
  )
}

/** Short and simple text is converted at once; everything else in the worker. */
function usePieces(text: string): readonly Piece[] {
  const id = useRef(0)
  const [converted, setConverted] = useState<readonly Piece[]>([])
  const wanted = useRef<string | undefined>(undefined)
  const working = useRef(false)
  const gone = useRef(false)
  /** The worker's last result, which its next one extends. */
  const made = useRef<readonly Piece[]>([])
  const tame = useMemo(() => (isTame(text) ? toHtml(text) : undefined), [text])
  useEffect(
    () => () => {
      gone.current = true
    },
    [],
  )
  useEffect(() => {
    wanted.current = tame ? undefined : text
    if (tame || working.current) return
    working.current = true
    id.current ||= nextId++
    const work = async (): Promise<void> => {
      // Text that arrived in between is converted at once, together.
      for (let next = wanted.current; next !== undefined && !gone.current; next = wanted.current) {
        wanted.current = undefined
        const done = await converter.run({ id: id.current, markdown: next })
        made.current = done ? [...made.current.slice(0, done.from), ...done.pieces] : plain(next)
        // After a time-out the worker was restarted and has lost its state.
        if (!done) id.current = nextId++
        if (!gone.current) setConverted(made.current)
      }
      working.current = false
    }
    void work()
  }, [text])
  const last = useRef<readonly Piece[]>([])
  if (tame) last.current = tame
  else if (converted.length > 0) last.current = converted
  return last.current
}
function plain(text: string): readonly Piece[] {
  return Array.from({ length: Math.ceil(text.length / plainChars) }, (_, at) => ({
    plain: text.slice(at * plainChars, (at + 1) * plainChars),
  }))
}

/** How many of them are drawn: as many as a frame has time for, then more in the next one. */
function useGradually(total: number): number {
  const [count, setCount] = useState(Math.min(total, 20))
  const began = useRef(0)
  began.current = performance.now()
  useEffect(() => {
    if (count >= total) return
    const frame = requestAnimationFrame(() => {
      // Drawing the last ones took so long: the next ones take about as long each.
      setCount((known) => Math.min(total, known + step.current))
    })
    return () => cancelAnimationFrame(frame)
  }, [count, total])
  const step = useRef(5)
  useLayoutEffect(() => {
    const tookMs = performance.now() - began.current
    step.current = Math.max(1, Math.min(200, tookMs > frameMs ? Math.floor(step.current / 2) : step.current * 2))
  }, [count])
  return Math.min(count, total)
}

/** `settled`: its text does not change any more. */
function Block({ piece, settled }: { readonly piece: Piece; readonly settled: boolean }) {
  const place = useRef<HTMLDivElement>(null)
  const key = typeof piece === 'string' ? piece : piece.plain
  useLayoutEffect(() => {
    if (typeof piece !== 'string') {
      const text = document.createElement('div')
      text.className = 'plain'
      text.textContent = piece.plain
      place.current?.replaceChildren(text)
      return
    }
    const fragment = DOMPurify.sanitize(piece, allowed)
    dress(fragment)
    place.current?.replaceChildren(fragment)
  }, [key])
  useEffect(() => (settled && place.current ? typesetWhenVisible(place.current) : undefined), [key, settled])
  return <div ref={place} class="block" />
}
