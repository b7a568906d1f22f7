import DOMPurify from 'dompurify'
import './typeset.css'
import { grammarOf } from './grammars.ts'
import type { Typeset, TypesetJob } from './typeset-worker.ts'
import { WorkerQueue } from './worker-queue.ts'

/** What takes longer stays as it is written. */
const MAX_MS = 10_000
const MAX_MATH_CHARS = 5000
/** To watch thousands within one paragraph takes the browser seconds: the others stay as they are written. */
const MAX_PER_BLOCK = 200
/** A longer formula within a sentence scrolls by itself. */
const WIDE_MATH_CHARS = 60

const worker = new WorkerQueue<TypesetJob, Typeset>(
  () => new Worker(new URL('./typeset-worker.ts', import.meta.url), { type: 'module' }),
  MAX_MS,
)

const allowedMath = {
  USE_PROFILES: { mathMl: true },
  FORBID_ATTR: ['style', 'class', 'id', 'href', 'xlink:href'],
  // The source of the formula, which would show as text.
  FORBID_CONTENTS: ['annotation', 'annotation-xml', 'style', 'script'],
  RETURN_DOM_FRAGMENT: true as const,
}

let visible: IntersectionObserver | undefined

/** Colours the code and lays out the formulas of a block that does not change any more, each when it comes into view. */
export function typesetWhenVisible(block: HTMLElement): () => void {
  visible ??= new IntersectionObserver(onSeen)
  const found = [...block.querySelectorAll<HTMLElement>('pre[data-language], [data-math]')].slice(0, MAX_PER_BLOCK)
  for (const element of found) visible.observe(element)
  return () => {
    for (const element of found) visible?.unobserve(element)
  }
}
function onSeen(entries: readonly IntersectionObserverEntry[], observer: IntersectionObserver): void {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting || !(target instanceof HTMLElement)) continue
    observer.unobserve(target)
    void (target.dataset['math'] === undefined ? highlight(target) : layOut(target))
  }
}

async function highlight(block: HTMLElement): Promise<void> {
  const grammar = grammarOf(block.dataset['language'] ?? '')
  const code = block.querySelector('code')
  if (!grammar || !code) return
  const text = code.textContent
  const done = await worker.run({ kind: 'code', text, grammar })
  if (!done?.tokens) return
  code.replaceChildren(
    ...done.tokens.map(([kind, part]) => {
      if (kind === '' || kind === 'foreground') return document.createTextNode(part)
      const span = document.createElement('span')
      span.className = kind
      span.textContent = part
      return span
    }),
  )
}

async function layOut(source: HTMLElement): Promise<void> {
  const tex = source.textContent
  const display = source.dataset['math'] === 'block'
  if (tex.length > MAX_MATH_CHARS) return
  const done = await worker.run({ kind: 'math', text: tex, display })
  if (done?.mathMl === undefined) return
  const math = document.createElement(display ? 'div' : 'span')
  math.className = display || tex.length > WIDE_MATH_CHARS ? 'math wide' : 'math'
  if (math.className === 'math wide') math.tabIndex = 0
  math.append(DOMPurify.sanitize(done.mathMl, allowedMath))
  source.replaceWith(math)
}
