import { useEffect, useRef, useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { PendingApprovals } from './approvals.ts'
import { focusMessageBox } from './composer.tsx'
import { WarningIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import type { Approval } from './wire.ts'

/** A button that appears under a pointer on its way to something else must not be pressed by it. */
const settleMs = 400

type Verb = 'once' | 'session' | 'reject'

/** What waits for an answer, those of the agent in view first. */
export function ApprovalList({
  approvals,
  agentId,
}: {
  readonly approvals: PendingApprovals
  readonly agentId: string
}) {
  const pending = useValue(approvals.pending)
  const problem = useValue(approvals.problem)
  const section = useRef<HTMLElement>(null)
  const announced = useRef(new Set<string>())
  const [said, setSaid] = useState('')
  const now = useNow(pending.length > 0)
  useEffect(() => {
    const first = pending.find(({ id }) => !announced.current.has(id))
    announced.current = new Set(pending.map(({ id }) => id))
    if (first)
      setSaid(
        `${first.agent_name} needs your approval, risk ${first.risk_level}: ${first.action_summary.slice(0, 300)}`,
      )
    else if (pending.length === 0) setSaid('')
  }, [pending])
  const answer = async (id: string, verb: Verb): Promise<void> => {
    const inside = section.current?.contains(document.activeElement) ?? false
    await approvals.answer(id, verb)
    // The button that had the focus is gone.
    if (!inside || section.current?.contains(document.activeElement)) return
    const next = section.current?.querySelector<HTMLElement>('button:not(:disabled)')
    if (next) next.focus()
    else focusMessageBox()
  }
  const sorted = [...pending].sort((a, b) => Number(b.agent_id === agentId) - Number(a.agent_id === agentId))
  return (
    <>
      <p class="hidden" role="alert">
        {said}
      </p>
      {(sorted.length > 0 || problem !== undefined) && (
        <section ref={section} class="approvals" aria-label="Waiting for your approval">
          {problem !== undefined && (
            <div class="problem" role="alert">
              <WarningIcon />
              <p>{problem}</p>
              <button type="button" onClick={() => approvals.problem.set(undefined)}>
                Dismiss
              </button>
            </div>
          )}
          <ul>
            {sorted.map((approval) => (
              <li key={approval.id}>
                <Request
                  approval={approval}
                  approvals={approvals}
                  now={now}
                  onAnswer={(verb) => answer(approval.id, verb)}
                />
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

interface RequestProps {
  readonly approval: Approval
  readonly approvals: PendingApprovals
  readonly now: number
  readonly onAnswer: (verb: Verb) => Promise<void>
}
function Request({ approval, approvals, now, onAnswer }: RequestProps) {
  const [settled, setSettled] = useState(false)
  const [working, setWorking] = useState(false)
  const [whole, setWhole] = useState<Approval | undefined>(approval.payload === null ? undefined : approval)
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), settleMs)
    return () => clearTimeout(timer)
  }, [])
  useEffect(() => {
    let gone = false
    if (!whole)
      approvals.whole(approval.id).then(
        (loaded) => {
          if (!gone) setWhole(loaded)
        },
        (error: unknown) => {
          if (!gone) setProblem(explain(error))
        },
      )
    return () => {
      gone = true
    }
  }, [approval.id])
  const answer = async (verb: Verb): Promise<void> => {
    setWorking(true)
    try {
      await onAnswer(verb)
    } finally {
      setWorking(false)
    }
  }
  const command = whole && commandOf(whole.payload)
  const titleId = `approval-${approval.id}`
  const shownId = `action-${approval.id}`
  const secondsLeft = Math.max(0, Math.ceil((Date.parse(approval.expires_at) - now) / 1000))
  return (
    <article class={`approval ${approval.risk_level}`} aria-labelledby={titleId}>
      <header>
        <WarningIcon />
        <h2 id={titleId}>
          <strong>{visible(approval.agent_name)}</strong> wants to{' '}
          {visible(approval.intent === '' ? `use ${approval.tool_name}` : approval.intent)}.
        </h2>
        <span class="risk">{approval.risk_level} risk</span>
      </header>
      {problem !== undefined ? (
        <p class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      ) : (
        <pre
          id={shownId}
          class={command === undefined ? undefined : 'command'}
          tabIndex={0}
          aria-label="Exactly what will be done"
        >
          <code>{whole ? (command ?? shown(whole.payload)) : 'Loading what will be done …'}</code>
        </pre>
      )}
      <details class="approval-details">
        <summary>Details</summary>
        <p>
          Tool <code>{visible(approval.tool_name)}</code>. {riskWords[approval.risk_level] ?? ''}
        </p>
        {approval.description !== '' && <p>{visible(approval.description)}</p>}
        {approval.session_covers !== null && (
          <p>“For this conversation” covers {visible(approval.session_covers)}, until the conversation ends.</p>
        )}
      </details>
      <div class="approval-actions">
        <p class="hint">
          {secondsLeft > 0 ? (
            <>
              Counts as rejected in{' '}
              <span role="timer">{secondsLeft > 120 ? `${Math.ceil(secondsLeft / 60)} min` : `${secondsLeft} s`}</span>.
            </>
          ) : (
            'The time is up.'
          )}
        </p>
        <button
          type="button"
          disabled={!settled || working}
          aria-describedby={shownId}
          onClick={() => void answer('reject')}
        >
          Reject
        </button>
        {approval.scopes.includes('session') && (
          <button
            type="button"
            disabled={!settled || working || !whole}
            aria-describedby={shownId}
            title={approval.session_covers === null ? undefined : `Covers ${approval.session_covers}`}
            onClick={() => void answer('session')}
          >
            For this conversation
          </button>
        )}
        <button
          type="button"
          class="primary"
          disabled={!settled || working || !whole}
          aria-describedby={shownId}
          onClick={() => void answer('once')}
        >
          Approve once
        </button>
      </div>
    </article>
  )
}

const riskWords: Readonly<Record<string, string>> = {
  low: 'It only reads, or changes little.',
  medium: 'It reaches outside its workspace.',
  high: 'It can change things.',
  critical: 'What it does may not be possible to undo.',
}

/** A command, with whatever else was said on lines of its own. `undefined` for what is no command. */
function commandOf(payload: unknown): string | undefined {
  if (typeof payload !== 'object' || payload === null || !('command' in payload) || typeof payload.command !== 'string')
    return undefined
  const rest = Object.entries(payload).filter(([name]) => name !== 'command')
  return [visible(payload.command), ...rest.map(([name, value]) => visible(`${name}: ${JSON.stringify(value)}`))].join(
    '\n',
  )
}
/** The one argument as it is, several each on a line of its own; nothing of it hidden. */
function shown(payload: unknown): string {
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) {
    const fields = Object.entries(payload)
    const [only] = fields
    if (only && fields.length === 1 && typeof only[1] === 'string') return visible(`${only[0]}: ${only[1]}`)
  }
  return visible(JSON.stringify(payload, undefined, 2) ?? '')
}
/** Characters that hide, or that turn the line around, are shown as what they are. */
function visible(text: string): string {
  return text.replaceAll(
    /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029\u3164\uffa0]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )
}

function useNow(running: boolean): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (!running) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [running])
  return now
}
