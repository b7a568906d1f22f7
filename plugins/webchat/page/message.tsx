import { useEffect, useState } from 'preact/hooks'
import { Avatar } from './agents.tsx'
import { explain } from './api.ts'
import { copyText } from './clipboard.ts'
import { WarningIcon } from './icons.tsx'
import { Markdown } from './markdown.tsx'
import { ToolCall } from './tool-call.tsx'
import { textOf } from './transcript.ts'
import type { Answer, Cost, Phase, Question } from './transcript.ts'

export function QuestionItem({ question }: { readonly question: Question }) {
  return (
    <li class="question">
      <h2 class={question.from === undefined ? 'hidden' : 'question-from'}>
        {question.from === undefined ? 'You' : `By ${question.from}`}
      </h2>
      <p class="bubble">{question.text}</p>
    </li>
  )
}

interface AnswerProps {
  readonly answer: Answer
  readonly name: string
  readonly last: boolean
  /** Where the message is, when that takes long. */
  readonly turnStatus: string | undefined
  /** Whether it is known what runs: until then a message without an answer may be one that is being answered. */
  readonly known: boolean
  /** For a message that failed and is on record. */
  readonly onRetryTurn: (turnId: string) => Promise<void>
  readonly onDropTurn: (turnId: string) => Promise<void>
  readonly onRetry: () => void
  readonly onReload: () => void
}

export function AnswerItem({
  answer,
  name,
  last,
  turnStatus,
  known,
  onRetry,
  onReload,
  onRetryTurn,
  onDropTurn,
}: AnswerProps) {
  const open = answer.state === 'thinking' || answer.state === 'streaming'
  const lastPart = answer.parts.at(-1)
  // Between a tool's result and the next word there is nothing to see either.
  const pondering = open && (lastPart === undefined || (lastPart.kind === 'tool' && lastPart.call.state !== 'running'))
  return (
    <li class="answer" aria-busy={open}>
      <Avatar name={name} />
      <div class="answer-body">
        <h2 class="answer-name">{name}</h2>
        {answer.thinking !== undefined && answer.thinking !== '' && (
          <details class="reasoning">
            <summary>{open && answer.parts.length === 0 ? 'Thinking …' : 'Reasoning'}</summary>
            <div class="reasoning-text" tabIndex={0}>
              {answer.thinking}
            </div>
          </details>
        )}
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
            <span role="status">{answer.phase ? <PhaseText phase={answer.phase} /> : (turnStatus ?? 'Thinking')}</span>
          </p>
        )}
        {open && !pondering && (answer.phase !== undefined || turnStatus !== undefined) && (
          <p class="aside" role="status">
            {answer.phase ? <PhaseText phase={answer.phase} /> : turnStatus}
          </p>
        )}
        {answer.state === 'detached' && (
          <p class="aside" role="status">
            The connection went away. {name} goes on, and the answer appears here when it is ready.
          </p>
        )}
        {answer.state === 'unanswered' && !known && (
          <p class="aside" role="status">
            Looking for the answer …
          </p>
        )}
        {answer.state === 'unanswered' && known && <Unanswered last={last} onRetry={onRetry} onReload={onReload} />}
        {answer.aside !== undefined && <p class="aside">{answer.aside}</p>}
        {answer.problem !== undefined && (
          <div class="problem" role="alert">
            <WarningIcon />
            <p>{answer.problem}</p>
            {answer.turnId !== undefined && answer.canRetry === true ? (
              <Failed turnId={answer.turnId} onRetry={onRetryTurn} onDrop={onDropTurn} />
            ) : (
              last && (
                <button type="button" onClick={onRetry}>
                  Ask again
                </button>
              )
            )}
          </div>
        )}
        {!open && answer.parts.length > 0 && <Footer answer={answer} />}
      </div>
    </li>
  )
}

/** What is waited for, with the time that is left when it is known. */
function PhaseText({ phase: { phase, detail, retryAtMs } }: { readonly phase: Phase }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (retryAtMs === undefined) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [retryAtMs])
  const own = phaseWords[phase] ?? phase.replaceAll('_', ' ')
  // The name of a provider, which what the daemon says begins with, stays as it is.
  const sentence = detail === '' ? own.charAt(0).toUpperCase() + own.slice(1) : detail.replace(/[.;,\s]+$/, '')
  if (retryAtMs === undefined) return <>{sentence}.</>
  const seconds = Math.ceil((retryAtMs - now) / 1000)
  return (
    <>
      {sentence}; <span aria-hidden="true">{seconds > 0 ? `next try in ${seconds} s` : 'trying again'}</span>.
    </>
  )
}
const phaseWords: Readonly<Record<string, string>> = {
  queued: 'other messages are answered before it',
  waiting_for_model: 'the model is thinking',
  streaming: 'the model is answering',
  retrying: 'the provider did not answer',
  circuit_open: 'the provider is not asked for a while, because it failed several times',
  switching_model: 'another model takes over',
  compacting: 'older messages are being summarised',
  running_tools: 'tools are running',
  waiting_for_approval: 'it waits for your approval',
}

function Failed({
  turnId,
  onRetry,
  onDrop,
}: {
  readonly turnId: string
  readonly onRetry: (turnId: string) => Promise<void>
  readonly onDrop: (turnId: string) => Promise<void>
}) {
  const [working, setWorking] = useState(false)
  const [problem, setProblem] = useState<string>()
  const run = async (what: (turnId: string) => Promise<void>): Promise<void> => {
    setWorking(true)
    setProblem(undefined)
    try {
      await what(turnId)
    } catch (error) {
      setProblem(explain(error))
    } finally {
      setWorking(false)
    }
  }
  return (
    <div class="aside-actions">
      <button type="button" disabled={working} onClick={() => void run(onRetry)}>
        Retry
      </button>
      <button type="button" disabled={working} onClick={() => void run(onDrop)}>
        Drop
      </button>
      {problem !== undefined && <span role="alert">{problem}</span>}
    </div>
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
