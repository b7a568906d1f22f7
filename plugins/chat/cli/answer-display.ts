import * as v from 'valibot'
import { escapeControls, exits, Failure, paint } from 'svc/cli'
import type { ServerEvent, View } from 'svc/cli'
import { Chunk, describePhase, Done, Phase, Problem, ToolResult, ToolUse } from './events.ts'

interface AnswerDisplayDeps {
  readonly view: View
  /** A person types at a prompt: what goes on is shown in the status line instead of lines of its own. */
  readonly hasPrompt: boolean
}

/** Shows the events of an answer as they come. */
export class AnswerDisplay {
  readonly #view: View
  readonly #hasPrompt: boolean
  #thoughts: string[] = []
  #isThinking = false
  constructor({ view, hasPrompt }: AnswerDisplayDeps) {
    this.#view = view
    this.#hasPrompt = hasPrompt
  }

  /** What the model thought before the last answer and between its calls of tools. */
  get thoughts(): string {
    return this.#thoughts.join('\n\n')
  }
  /** The events of another answer follow. */
  begin(): void {
    this.#thoughts = []
    this.#isThinking = false
  }

  show({ event, data }: ServerEvent): void {
    if (event === 'thinking') this.#keep(v.parse(Chunk, data).content)
    else this.#isThinking = false
    switch (event) {
      case 'chunk':
        this.#view.status('answering')
        this.#view.text(v.parse(Chunk, data).content)
        return
      case 'thinking':
        this.#view.status('the model is thinking')
        this.#view.preamble(v.parse(Chunk, data).content)
        return
      case 'phase':
        return this.#showPhase(v.parse(Phase, data))
      case 'tool_use':
        return this.#showCall(v.parse(ToolUse, data).tool)
      case 'tool_result':
        return this.#showResult(v.parse(ToolResult, data))
      // Events of a newer daemon are no reason to fail.
      default:
    }
  }

  #keep(thought: string): void {
    if (this.#isThinking) this.#thoughts.push(`${this.#thoughts.pop() ?? ''}${thought}`)
    else this.#thoughts.push(thought)
    this.#isThinking = true
  }

  dim(text: string): string {
    return paint(this.#view.colored, 90, text)
  }

  #showPhase(phase: v.InferOutput<typeof Phase>): void {
    const { text, isUnusual } = describePhase(phase)
    this.#view.status(escapeControls(text))
    if (isUnusual) this.#view.note(this.dim(`(${escapeControls(text)})`))
  }
  #showCall(name: string): void {
    const tool = escapeControls(name)
    if (this.#hasPrompt) this.#view.status(`running ${tool}`)
    else this.#view.note(this.dim(`[${tool} …]`))
  }
  #showResult({ tool, input, is_error: isError }: v.InferOutput<typeof ToolResult>): void {
    const shown = escapeControls(JSON.stringify(input ?? {})).slice(0, 200)
    this.#view.note(this.dim(`[${escapeControls(tool)} ${shown}${isError ? ' failed' : ''}]`))
    this.#view.status('waiting for the model')
  }
}

/** Whether the answer was stopped, here or by somebody else on the page or through the API. */
export function isCancelled({ event, data }: ServerEvent): boolean {
  return event === 'done' && v.parse(Done, data).stop === 'cancelled'
}

/** What an event of a failed answer says; `undefined` for any other event. */
export function failureMessage({ event, data }: ServerEvent): string | undefined {
  if (event !== 'error') return undefined
  const { content, message, error } = v.parse(Problem, typeof data === 'string' ? { message: data } : data)
  return content ?? message ?? (typeof error === 'string' ? error : error?.message) ?? 'the agent failed'
}

/** A message that was accepted and not answered. */
export function unanswered(message: string, hasPrompt: boolean, cause?: unknown): Failure {
  const advice = hasPrompt
    ? '/retry sends the message again, /drop takes it away; the log of the daemon says more'
    : 'send the message again, or look at the log of the daemon'
  return new Failure(exits.failed, message, advice, { cause })
}
