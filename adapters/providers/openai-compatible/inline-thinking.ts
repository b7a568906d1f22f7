import type { StreamedText } from 'svc/providers'

type Target = Pick<StreamedText, 'addText' | 'addThinking'>
const BEGIN = '<think>'
const END = '</think>'

/**
 * Some servers write what a model thinks into its text, as `<think>…</think>` before the answer. Only at the very
 * beginning does that mean
 * thinking: further on a model may be writing about the tag.
 */
export class InlineThinking {
  readonly #target: Target
  #state: 'before' | 'inside' | 'after' = 'before'
  #held = ''
  constructor(target: Target) {
    this.#target = target
  }

  addText(text: string): void {
    if (this.#state === 'after') return this.#target.addText(text)
    this.#held += text
    if (this.#state === 'before') this.#begin()
    if (this.#state === 'inside') this.#go()
  }
  /** What is held back in case a tag follows. */
  finish(): void {
    const rest = this.#held
    this.#held = ''
    if (rest === '') return
    if (this.#state === 'inside') this.#target.addThinking(rest)
    else this.#target.addText(rest)
  }

  #begin(): void {
    const start = this.#held.trimStart()
    if (start.length < BEGIN.length && BEGIN.startsWith(start)) return
    if (start.startsWith(BEGIN)) {
      this.#state = 'inside'
      this.#held = start.slice(BEGIN.length)
    } else {
      this.#state = 'after'
      this.finish()
    }
  }
  #go(): void {
    const end = this.#held.indexOf(END)
    if (end >= 0) {
      const thought = this.#held.slice(0, end)
      const text = this.#held.slice(end + END.length).trimStart()
      this.#held = ''
      this.#state = 'after'
      if (thought.trim() !== '') this.#target.addThinking(thought)
      if (text !== '') this.#target.addText(text)
      return
    }
    // The end of what is there may be the beginning of the tag.
    let kept = Math.min(END.length - 1, this.#held.length)
    while (kept > 0 && !END.startsWith(this.#held.slice(-kept))) kept--
    const thought = this.#held.slice(0, this.#held.length - kept)
    this.#held = this.#held.slice(this.#held.length - kept)
    if (thought !== '') this.#target.addThinking(thought)
  }
}
