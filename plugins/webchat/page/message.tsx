import { useEffect, useState } from 'preact/hooks'
import { Avatar } from './agents.tsx'
import { SentFiles } from './attachments.tsx'
import { explain } from './api.ts'
import { copyText } from './clipboard.ts'
import { WarningIcon } from './icons.tsx'
import { UsedMemories } from './memories.tsx'
import { Markdown } from './markdown.tsx'
import { CanvasFrame, canvasIdOf } from './canvas.tsx'
import { ToolCall } from './tool-call.tsx'
import { textOf } from './transcript.ts'
import type { Answer, Cost, Phase, Question, ToolCall as Call } from './transcript.ts'

/** The item of an entry, which a search scrolls to. */
export const itemId = ({ id }: { readonly id: number }): string => `entry-${id}`

export function QuestionItem({ question, isFound }: { readonly question: Question; readonly isFound: boolean }) {
  return (
    <li id={itemId(question)} tabIndex={-1} class={`question${isFound ? ' found-entry' : ''}`}>
      <h2 class={question.from === undefined ? 'hidden' : 'question-from'}>
        {question.from === undefined ? 'You' : `By ${question.from}`}
      </h2>
      <p class="bubble">{question.text}</p>
      <SentFiles files={question.files} />
      {question.quoted !== undefined && (
        <details class="attached-text">
          <summary>What the agent was given of {question.files.length === 1 ? 'this file' : 'these files'}</summary>
          <pre tabIndex={0}>{question.quoted}</pre>
        </details>
      )}
    </li>
  )
}

interface AnswerProps {
  readonly answer: Answer
  readonly name: string
  readonly last: boolean
  /** It was searched for. */
  readonly isFound: boolean
  /** Why the answer takes long, when it does. */
  readonly turnStatus: string | undefined
  /** The tools that the agent has asked an approval for. */
  readonly waitingTools: readonly string[]
  /** Whether the running turns are known: before that, a message without an answer may be in progress. */
  readonly known: boolean
  /** For a failed message that the daemon has recorded. */
  readonly onRetryTurn: (turnId: string) => Promise<void>
  readonly onDropTurn: (turnId: string) => Promise<void>
  readonly onRetry: () => void
  readonly onReload: () => void
  /** A new conversation, with what was said up to this answer. */
  readonly onBranch: (turnId: string) => void
}

export function AnswerItem(props: AnswerProps) {
  const { answer, name, turnStatus, isFound, waitingTools, onBranch } = props
  const isOpen = answer.state === 'thinking' || answer.state === 'streaming'
  return (
    <li id={itemId(answer)} tabIndex={-1} class={`answer${isFound ? ' found-entry' : ''}`} aria-busy={isOpen}>
      <Avatar name={name} />
      <div class="answer-body">
        <h2 class="answer-name">{name}</h2>
        <Reasoning answer={answer} isOpen={isOpen} />
        {answer.parts.map((part, index) =>
          part.kind === 'tool' ? (
            <ToolPart key={index} call={part.call} isWaiting={waitingTools.includes(part.call.name)} />
          ) : (
            <Markdown key={index} text={part.text} growing={isOpen && index === answer.parts.length - 1} />
          ),
        )}
        {isOpen && <Progress answer={answer} turnStatus={turnStatus} />}
        <MissingAnswer {...props} />
        {answer.aside !== undefined && <p class="aside">{answer.aside}</p>}
        {answer.problem !== undefined && <AnswerProblem {...props} problem={answer.problem} />}
        {!isOpen && answer.parts.length > 0 && <Footer answer={answer} onBranch={onBranch} />}
      </div>
    </li>
  )
}

function ToolPart({ call, isWaiting }: { readonly call: Call; readonly isWaiting: boolean }) {
  const canvasId = canvasIdOf(call)
  return (
    <>
      <ToolCall call={call} isWaiting={isWaiting} />
      {canvasId !== undefined && <CanvasFrame id={canvasId} />}
    </>
  )
}

function Reasoning({ answer: { thinking, parts }, isOpen }: { readonly answer: Answer; readonly isOpen: boolean }) {
  if (thinking === undefined || thinking === '') return null
  return (
    <details class="reasoning">
      <summary>{isOpen && parts.length === 0 ? 'Thinking …' : 'Reasoning'}</summary>
      <div class="reasoning-text" tabIndex={0}>
        {thinking}
      </div>
    </details>
  )
}

interface ProgressProps {
  readonly answer: Answer
  readonly turnStatus: string | undefined
}

/** What an open answer waits for. Dots fill the time in which no text and no tool is visible. */
function Progress({ answer: { parts, phase }, turnStatus }: ProgressProps) {
  const lastPart = parts.at(-1)
  const isSilent = lastPart === undefined || (lastPart.kind === 'tool' && lastPart.call.state !== 'running')
  if (isSilent)
    return (
      <p class="thinking">
        <span class="dots" aria-hidden="true">
          <i />
          <i />
          <i />
        </span>
        <span role="status">{phase ? <PhaseText phase={phase} /> : (turnStatus ?? 'Thinking')}</span>
      </p>
    )
  if (phase === undefined && turnStatus === undefined) return null
  return (
    <p class="aside" role="status">
      {phase ? <PhaseText phase={phase} /> : turnStatus}
    </p>
  )
}

/** Why a message has no answer, or not yet. */
function MissingAnswer({ answer, name, last, known, onRetry, onReload }: AnswerProps) {
  if (answer.state === 'detached')
    return (
      <p class="aside" role="status">
        The connection went away. {name} goes on, and the answer appears here when it is ready.
      </p>
    )
  if (answer.state !== 'unanswered') return null
  if (known) return <Unanswered last={last} onRetry={onRetry} onReload={onReload} />
  return (
    <p class="aside" role="status">
      Looking for the answer …
    </p>
  )
}

function AnswerProblem({
  answer: { turnId, canRetry },
  problem,
  last,
  onRetry,
  onRetryTurn,
  onDropTurn,
}: AnswerProps & { readonly problem: string }) {
  const isRecorded = turnId !== undefined && canRetry === true
  return (
    <div class="problem" role="alert">
      <WarningIcon />
      <p>{problem}</p>
      {isRecorded && <FailedTurnActions turnId={turnId} onRetry={onRetryTurn} onDrop={onDropTurn} />}
      {!isRecorded && last && (
        <button type="button" onClick={onRetry}>
          Ask again
        </button>
      )}
    </div>
  )
}

/** What the answer waits for, with the time until the next attempt if it is known. */
function PhaseText({ phase: { phase, detail, retryAtMs } }: { readonly phase: Phase }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (retryAtMs === undefined) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [retryAtMs])
  const description = phaseDescriptions[phase] ?? phase.replaceAll('_', ' ')
  // The detail may begin with the name of a provider, so its case stays.
  const sentence =
    detail === '' ? description.charAt(0).toUpperCase() + description.slice(1) : detail.replace(/[.;,\s]+$/, '')
  if (retryAtMs === undefined) return <>{sentence}.</>
  const seconds = Math.ceil((retryAtMs - now) / 1000)
  return (
    <>
      {sentence}; <span aria-hidden="true">{seconds > 0 ? `next try in ${seconds} s` : 'trying again'}</span>.
    </>
  )
}
const phaseDescriptions: Readonly<Record<string, string>> = {
  queued: 'other messages are answered before it',
  waiting_for_model: 'the model is thinking',
  streaming: 'the model is answering',
  retrying: 'the provider did not answer',
  circuit_open: 'the provider is not called for a while, because it failed several times',
  switching_model: 'another model takes over',
  compacting: 'older messages are being summarised',
  running_tools: 'tools are running',
  waiting_for_approval: 'it waits for your approval',
}

function FailedTurnActions({
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
  const run = async (action: (turnId: string) => Promise<void>): Promise<void> => {
    setWorking(true)
    setProblem(undefined)
    try {
      await action(turnId)
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

function Footer({ answer, onBranch }: Pick<AnswerProps, 'answer' | 'onBranch'>) {
  const [copied, setCopied] = useState(false)
  const text = textOf(answer.parts)
  const { turnId, state } = answer
  return (
    <footer class="answer-foot">
      {answer.at !== undefined && <AnswerTime at={answer.at} />}
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
      {turnId !== undefined && state !== 'failed' && (
        <button
          type="button"
          class="foot-copy"
          title="Begin a new conversation with what was said up to here"
          onClick={() => onBranch(turnId)}
        >
          Branch
        </button>
      )}
      {turnId !== undefined && <UsedMemories turnId={turnId} />}
    </footer>
  )
}

function AnswerTime({ at }: { readonly at: string }) {
  const time = new Date(at)
  const isToday = time.toDateString() === new Date().toDateString()
  return (
    <time dateTime={at} title={time.toLocaleString()}>
      {isToday
        ? time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
        : time.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}
    </time>
  )
}

/** Only for a cost that needs an explanation. */
function explainCost({ costUsd, model }: Cost): string | undefined {
  return costUsd === null
    ? `The price of ${model ?? 'this model'} is unknown. ` +
        'Its price can be set in [providers.…] prices of the configuration.'
    : undefined
}
function describeCost({ inputTokens, outputTokens, iterations, costUsd, provider, model }: Cost): string {
  const count = new Intl.NumberFormat('en')
  const items = [`${count.format(inputTokens)} tokens in`, `${count.format(outputTokens)} out`]
  if (iterations !== undefined && iterations > 1) items.push(`${iterations} steps`)
  if (costUsd === null) items.push('cost unknown')
  else if (costUsd !== undefined) items.push(describePrice(costUsd))
  if (model !== undefined) items.push(provider === undefined ? model : `${provider}/${model}`)
  return items.join(' · ')
}

function describePrice(costUsd: number): string {
  if (costUsd === 0) return 'free'
  if (costUsd < 0.0001) return 'under $0.0001'
  return `$${costUsd.toFixed(costUsd < 0.1 ? 4 : 2)}`
}
