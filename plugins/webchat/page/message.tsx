import { useState } from 'preact/hooks'
import { Avatar } from './agents.tsx'
import { copyText } from './clipboard.ts'
import { WarningIcon } from './icons.tsx'
import { Markdown } from './markdown.tsx'
import { ToolCall } from './tool-call.tsx'
import { textOf } from './transcript.ts'
import type { Answer, Cost, Question } from './transcript.ts'

export function QuestionItem({ question }: { readonly question: Question }) {
  return (
    <li class="question">
      <h2 class="hidden">You</h2>
      <p class="bubble">{question.text}</p>
    </li>
  )
}

interface AnswerProps {
  readonly answer: Answer
  readonly name: string
  readonly last: boolean
  /** Where the message is, when that takes long. */ readonly whereabouts: string | undefined
  readonly onRetry: () => void
  readonly onReload: () => void
}

export function AnswerItem({ answer, name, last, whereabouts, onRetry, onReload }: AnswerProps) {
  const open = answer.state === 'thinking' || answer.state === 'streaming'
  const lastPart = answer.parts.at(-1)
  // Between a tool's result and the next word there is nothing to see either.
  const pondering = open && (lastPart === undefined || (lastPart.kind === 'tool' && lastPart.call.state !== 'running'))
  return (
    <li class="answer" aria-busy={open}>
      <Avatar name={name} />
      <div class="answer-body">
        <h2 class="answer-name">{name}</h2>
        {answer.parts.map((part, at) =>
          part.kind === 'tool' ? (
            <ToolCall key={at} call={part.call} />
          ) : (
            <Markdown key={at} text={part.text} growing={open && at === answer.parts.length - 1} />
          ),
        )}
        {pondering && (
          <p class="thinking">
            <span class="dots" aria-hidden="true">
              <i />
              <i />
              <i />
            </span>
            <span role="status">{whereabouts ?? 'Thinking'}</span>
          </p>
        )}
        {open && !pondering && whereabouts !== undefined && (
          <p class="aside" role="status">
            {whereabouts}
          </p>
        )}
        {answer.state === 'detached' && (
          <p class="aside" role="status">
            The connection went away. {name} goes on, and the answer appears here when it is ready.
          </p>
        )}
        {answer.state === 'unanswered' && <Unanswered last={last} onRetry={onRetry} onReload={onReload} />}
        {answer.aside !== undefined && <p class="aside">{answer.aside}</p>}
        {answer.problem !== undefined && (
          <div class="problem" role="alert">
            <WarningIcon />
            <p>{answer.problem}</p>
            {last && (
              <button type="button" onClick={onRetry}>
                Ask again
              </button>
            )}
          </div>
        )}
        {!open && answer.parts.length > 0 && <Footer answer={answer} />}
      </div>
    </li>
  )
}

function Unanswered({
  last,
  onRetry,
  onReload,
}: {
  readonly last: boolean
  readonly onRetry: () => void
  readonly onReload: () => void
}) {
  return (
    <div class="aside">
      <p>No answer is recorded for this message{last ? ' yet' : ''}.</p>
      {last && (
        <p class="aside-actions">
          <button type="button" onClick={onReload}>
            Look again
          </button>
          <button type="button" onClick={onRetry}>
            Ask again
          </button>
        </p>
      )}
    </div>
  )
}

function Footer({ answer }: { readonly answer: Answer }) {
  const [copied, setCopied] = useState(false)
  const text = textOf(answer.parts)
  return (
    <footer class="answer-foot">
      {answer.cost && answer.cost.inputTokens + answer.cost.outputTokens > 0 && (
        <span title={explainCost(answer.cost)}>{describeCost(answer.cost)}</span>
      )}
      {text !== '' && (
        <button
          type="button"
          class="foot-copy"
          aria-label={copied ? 'Copied' : 'Copy this answer'}
          onBlur={() => setCopied(false)}
          onClick={() => {
            void copyText(text).then(setCopied)
          }}
        >
          {copied ? 'Copied' : 'Copy'}
        </button>
      )}
    </footer>
  )
}

/** Only where the cost needs a word. */
function explainCost({ costUsd, model }: Cost): string | undefined {
  return costUsd === null
    ? `Nobody knows what ${model ?? 'this model'} costs. Its price can be set in [providers.…] prices of the configuration.`
    : undefined
}
export function describeCost({ inputTokens, outputTokens, iterations, costUsd, provider, model }: Cost): string {
  const count = new Intl.NumberFormat('en')
  const said = [`${count.format(inputTokens)} tokens in`, `${count.format(outputTokens)} out`]
  if (iterations !== undefined && iterations > 1) said.push(`${iterations} steps`)
  if (costUsd === null) said.push('cost unknown')
  else if (costUsd !== undefined)
    said.push(
      costUsd === 0 ? 'free' : costUsd < 0.0001 ? 'under $0.0001' : `$${costUsd.toFixed(costUsd < 0.1 ? 4 : 2)}`,
    )
  if (model !== undefined) said.push(provider === undefined ? model : `${provider}/${model}`)
  return said.join(' · ')
}
