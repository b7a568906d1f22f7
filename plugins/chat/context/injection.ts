import type { Turn } from 'svc/providers'
import type { Manifest } from '../../agents/contract.ts'

export interface Injected {
  readonly system: string
  readonly turns: readonly Turn[]
}

/**
 * The request with the texts that the manifest adds to every conversation, `context_injection` (API facts 2.1).
 * Decision: `system` goes after the system prompt, `before_user` right before the question, `after_reset` after the
 * system prompt until the first answer. `condition` is a text that the question must contain, in upper or lower case.
 * The session does not store these texts.
 */
export function inject(system: string, turns: readonly Turn[], injections: Manifest['context_injection']): Injected {
  if (injections.length === 0) return { system, turns }
  const at = turns.findLastIndex((turn) => turn.role === 'user')
  const question = turns[at]
  const questionText =
    question?.role === 'user'
      ? question.parts
          .map((part) => (part.type === 'text' ? part.text : ''))
          .join('\n')
          .toLowerCase()
      : ''
  const fresh = !turns.some((turn) => turn.role === 'assistant')
  const matching = injections.filter(
    ({ condition, position }) =>
      questionText.includes((condition ?? '').toLowerCase()) && (position !== 'after_reset' || fresh),
  )
  const systemTexts = matching.filter(({ position }) => position !== 'before_user').map(toText)
  const before = matching.filter(({ position }) => position === 'before_user').map(toText)
  return {
    system: [system, ...systemTexts].filter((text) => text !== '').join('\n\n'),
    turns:
      question?.role !== 'user' || before.length === 0
        ? turns
        : turns.with(at, { ...question, parts: [{ type: 'text', text: before.join('\n\n') }, ...question.parts] }),
  }
}
const toText = ({ name, content }: Manifest['context_injection'][number]): string =>
  name === undefined || name === '' ? content : `[${name}]\n${content}`
