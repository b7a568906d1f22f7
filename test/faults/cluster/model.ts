import type { Answer, FakeProvider, RecordedRequest } from '../../support/fake-provider.ts'
import type { Json } from '../../support/json.ts'

/** Each load begins its labels with a letter of its own; then come the round, the client and a number. */
const LABEL = /\b(mark|say) ([a-z]\d+-\d+-\d+)\b/g
/** The last one: a message that was cancelled and not answered is put together with the next. */
const findLabel = (text: string): RegExpExecArray | undefined => [...text.matchAll(LABEL)].at(-1)

/** The label of a message, such as `m0-1-2` in `mark m0-1-2`. */
export function labelOf(text: string): string | undefined {
  return findLabel(text)?.[2]
}

/**
 * The model of all agents: for `mark X` it calls the tool `mark`, and its answer to `X` ends in `<X>`. `spent` is told of
 * each answer.
 */
export function teach(
  fake: FakeProvider,
  usage: Readonly<Record<string, number>>,
  spent: (label: string) => void,
): void {
  fake.always(({ body }: RecordedRequest): Answer => {
    const messages = body.messages as readonly Json[]
    const at = messages.findLastIndex(({ role, content }) => role === 'user' && findLabel(JSON.stringify(content)))
    const [, verb, label = ''] = findLabel(JSON.stringify(messages[at]?.content ?? '')) ?? []
    const result = messages.slice(at + 1).find(({ role }) => role === 'tool')
    if (body.model === 'fake-2') spent(label)
    if (verb === 'mark' && !result) return { calls: [{ name: 'mark', args: { label } }], usage }
    const told = result === undefined ? 'Said' : JSON.stringify(result.content).includes('marked') ? 'It marked' : 'Cut'
    return { text: [`${told} `, 'what was ', 'asked: ', `<${label}>`], gapMs: 15, usage }
  })
}
