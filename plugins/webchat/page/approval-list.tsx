import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { AlwaysDialog } from './always-dialog.tsx'
import { explain } from './api.ts'
import { describePayload, escapeHidden, riskDescriptions } from './approval-text.ts'
import { ApprovalActions } from './approval-actions.tsx'
import type { Verb } from './approval-actions.tsx'
import { ApprovalForm, readAnswers } from './approval-form.tsx'
import { useNotifications } from './approval-notifications.ts'
import type { AnswerDetails, PendingApprovals } from './approvals.ts'
import { focusMessageBox } from './composer.tsx'
import { WarningIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import { FieldProblem, ProblemBanner } from './problem.tsx'
import type { Approval } from './wire.ts'

interface ApprovalListProps {
  readonly approvals: PendingApprovals
  readonly agentId: string
}

/** Pending approvals; those of the agent in view come first. */
export function ApprovalList({ approvals, agentId }: ApprovalListProps) {
  const pending = useValue(approvals.pending)
  const problem = useValue(approvals.problem)
  const section = useRef<HTMLElement>(null)
  const announcement = useAnnouncement(pending)
  const now = useNow(pending.length > 0)
  const { canAsk, ask } = useNotifications(pending)
  const answer = async (id: string, verb: Verb, details?: AnswerDetails): Promise<void> => {
    const hadFocus = hasFocus(section)
    await approvals.answer(id, verb, details)
    if (hadFocus && !hasFocus(section)) focusNext(section)
  }
  const sorted = [...pending].sort((a, b) => Number(b.agent_id === agentId) - Number(a.agent_id === agentId))
  return (
    <>
      <p class="hidden" role="alert">
        {announcement}
      </p>
      {(sorted.length > 0 || problem !== undefined) && (
        <section ref={section} class="approvals" aria-label="Waiting for your approval">
          {problem !== undefined && (
            <ProblemBanner problem={problem} action="Dismiss" onAction={() => approvals.problem.set(undefined)} />
          )}
          <ul>
            {sorted.map((approval) => (
              <li key={approval.id}>
                <ApprovalCard
                  approval={approval}
                  approvals={approvals}
                  now={now}
                  onAnswer={(verb, details) => answer(approval.id, verb, details)}
                />
              </li>
            ))}
          </ul>
          {canAsk && sorted.length > 0 && (
            <button type="button" class="quiet approval-notify" onClick={ask}>
              Notify me of the next ones
            </button>
          )}
        </section>
      )}
    </>
  )
}

const hasFocus = ({ current }: RefObject<HTMLElement | null>): boolean =>
  current?.contains(document.activeElement) ?? false

/** The button that had the focus was removed. */
function focusNext({ current }: RefObject<HTMLElement | null>): void {
  const next = current?.querySelector<HTMLElement>('button:not(:disabled)')
  if (next) next.focus()
  else focusMessageBox()
}

/** The text for a screen reader: the newest approval, once. */
function useAnnouncement(pending: readonly Approval[]): string {
  const announced = useRef(new Set<string>())
  const [announcement, setAnnouncement] = useState('')
  useEffect(() => {
    const first = pending.find(({ id }) => !announced.current.has(id))
    announced.current = new Set(pending.map(({ id }) => id))
    if (first)
      setAnnouncement(
        `${first.agent_name} needs your approval, risk ${first.risk_level}: ${first.action_summary.slice(0, 300)}`,
      )
    else if (pending.length === 0) setAnnouncement('')
  }, [pending])
  return announcement
}

interface ApprovalCardProps {
  readonly approval: Approval
  readonly approvals: PendingApprovals
  readonly now: number
  readonly onAnswer: (verb: Verb, details?: AnswerDetails) => Promise<void>
}

function ApprovalCard({ approval, approvals, now, onAnswer }: ApprovalCardProps) {
  const { loaded, problem } = useWholeApproval(approval, approvals)
  const payload = loaded && describePayload(loaded.payload)
  const form = useRef<HTMLFormElement>(null)
  const titleId = `approval-${approval.id}`
  const payloadId = `action-${approval.id}`
  const intent = approval.intent === '' ? `use ${approval.tool_name}` : approval.intent
  return (
    // A click on it gives it the focus, without which its keys do nothing.
    <article
      class={`approval ${approval.risk_level}`}
      aria-labelledby={titleId}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (pressAnswer(event.currentTarget, event)) event.preventDefault()
      }}
    >
      <header>
        <WarningIcon />
        <h2 id={titleId}>
          <strong>{escapeHidden(approval.agent_name)}</strong> wants to {escapeHidden(intent)}.
        </h2>
        <span class="risk">{approval.risk_level} risk</span>
      </header>
      {problem !== undefined ? (
        <FieldProblem problem={problem} />
      ) : (
        <pre id={payloadId} tabIndex={0} aria-label="Exactly what will be done">
          <code>{payload ?? 'Loading what will be done …'}</code>
        </pre>
      )}
      {approval.approvals_needed > 1 && <p class="approval-people">{describePeople(approval)}</p>}
      {approval.escalated_to.length > 0 && <p class="approval-people">{describeAsked(approval)}</p>}
      {approval.form && <ApprovalForm form={approval.form} id={approval.id} formRef={form} />}
      <Details approval={approval} />
      <ApprovalActions
        approval={approval}
        now={now}
        payloadId={payloadId}
        isLoaded={loaded !== undefined}
        onAnswer={async (verb, reason) => {
          if (!form.current || verb === 'reject') await onAnswer(verb, { reason })
          // The browser shows what is wrong with a field.
          else if (form.current.reportValidity()) await onAnswer(verb, { content: readAnswers(form.current) })
        }}
      />
    </article>
  )
}

/** Whether a key was an answer. Text that is typed is none, nor is a key that is held down since the card before. */
function pressAnswer(card: HTMLElement, event: KeyboardEvent): boolean {
  const { target, key } = event
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !/^[yn]$/i.test(key)) return false
  if (target instanceof Element && target.closest('input, select, textarea')) return false
  const button = card.querySelector<HTMLButtonElement>(`button[aria-keyshortcuts=${key.toLowerCase()}]`)
  button?.click()
  return button !== null
}

function describePeople({ first_approved_by: first }: Approval): string {
  return first === null
    ? 'Two different people have to approve this.'
    : `Approved by ${escapeHidden(first)}. Another person has to approve it too.`
}

function describeAsked({ escalated_to: chats }: Approval): string {
  return `Nobody answered, so others were asked: ${chats.map(({ channel, to }) => escapeHidden(`${channel} ${to}`)).join(', ')}.`
}

/** Loads an approval whose payload was too long for the list. */
function useWholeApproval(approval: Approval, approvals: PendingApprovals) {
  const [loaded, setLoaded] = useState<Approval | undefined>(approval.payload === null ? undefined : approval)
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let unmounted = false
    if (!loaded)
      approvals.whole(approval.id).then(
        (whole) => {
          if (!unmounted) setLoaded(whole)
        },
        (error: unknown) => {
          if (!unmounted) setProblem(explain(error))
        },
      )
    return () => {
      unmounted = true
    }
  }, [approval.id])
  return { loaded, problem }
}

function Details({ approval }: { readonly approval: Approval }) {
  const [explaining, setExplaining] = useState(false)
  return (
    <details class="approval-details">
      <summary>Details</summary>
      <p>
        Tool <code>{escapeHidden(approval.tool_name)}</code>. {riskDescriptions[approval.risk_level] ?? ''}
      </p>
      {approval.description !== '' && <p>{escapeHidden(approval.description)}</p>}
      {approval.session_covers !== null && (
        <p>“For this conversation” covers {escapeHidden(approval.session_covers)}, until the conversation ends.</p>
      )}
      {approval.scopes.includes('once') && !approval.form && (
        <button type="button" class="approval-always" onClick={() => setExplaining(true)}>
          Always …
        </button>
      )}
      {explaining && <AlwaysDialog approval={approval} onClose={() => setExplaining(false)} />}
    </details>
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
