import katex from 'katex'

/**
 * TeX as MathML, which the browser lays out by itself: no style sheet, no font and no inline style. `undefined` when it
 * is not valid TeX.
 */
export function toMathMl(tex: string, display: boolean): string | undefined {
  try {
    return katex.renderToString(tex, {
      output: 'mathml',
      displayMode: display,
      trust: false,
      strict: 'ignore',
      maxExpand: 200,
      maxSize: 20,
    })
  } catch (error) {
    if (error instanceof katex.ParseError) return undefined
    throw error
  }
}
