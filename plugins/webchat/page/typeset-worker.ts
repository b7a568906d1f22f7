import type { Grammar } from './grammars.ts'
import type { Token } from './highlight.ts'

export type TypesetJob =
  | { readonly kind: 'code'; readonly text: string; readonly grammar: Grammar }
  | { readonly kind: 'math'; readonly text: string; readonly display: boolean }
export interface Typeset {
  readonly tokens?: readonly Token[]
  readonly mathMl?: string | undefined
}

async function typeset(job: TypesetJob): Promise<Typeset> {
  if (job.kind === 'code') {
    const { highlight } = await import('./highlight.ts')
    return { tokens: await highlight(job.text, job.grammar) }
  }
  const { toMathMl } = await import('./math.ts')
  return { mathMl: toMathMl(job.text, job.display) }
}

async function answer(job: TypesetJob): Promise<void> {
  try {
    postMessage(await typeset(job), {})
  } catch (error) {
    // The queue hears of it as an error of the worker, and starts another.
    reportError(error)
  }
}

self.addEventListener('message', ({ data }: MessageEvent<TypesetJob>) => void answer(data))
