import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import './approval-actions.css'
import type { Approval } from './wire.ts'

/** A click within this time was meant for what was there before the button appeared. */
const CLICK_GUARD_MS = 400
const MAX_REASON_CHARS = 1024

export type Verb = 'once' | 'session' | 'reject'

interface ApprovalActionsProps {
  readonly approval: Approval
  readonly now: number
  readonly payloadId: string
  /** Nothing can be approved before it is shown whole. */
  readonly isLoaded: boolean
  /** `reason`: of a rejection, for the agent to read. */
  readonly onAnswer: (verb: Verb, reason?: string) => Promise<void>
}

/** The answers to an approval. A rejection asks for its reason, which may stay empty. */
export function ApprovalActions({ approval, now, payloadId, isLoaded, onAnswer }: ApprovalActionsProps) {
  const isGuarded = useClickGuard()
  const [working, setWorking] = useState(false)
  const [isRejecting, setRejecting] = useState(false)
  const box = useFocusOnReturn(isRejecting)
  const answer = async (verb: Verb, reason?: string): Promise<void> => {
    setWorking(true)
    try {
      await onAnswer(verb, reason)
    } finally {
      setWorking(false)
    }
  }
  return (
    <div ref={box} class="approval-actions">
      <div class="approval-hints">
        <Deadline expiresAt={approval.expires_at} now={now} />
        {approval.scopes.includes('once') && !approval.form && !isRejecting && (
          <p class="hint approval-keys" aria-hidden="true">
            <kbd>Y</kbd> approves once, <kbd>N</kbd> rejects
          </p>
        )}
      </div>
      {isRejecting ? (
        <Rejection
          id={approval.id}
          working={working}
          onReject={(reason) => void answer('reject', reason)}
          onBack={() => setRejecting(false)}
        />
      ) : (
        <Choices
          approval={approval}
          payloadId={payloadId}
          canReject={!isGuarded && !working}
          canApprove={!isGuarded && !working && isLoaded}
          onApprove={(verb) => void answer(verb)}
          onReject={() => setRejecting(true)}
        />
      )}
    </div>
  )
}

/** Whoever comes back from the reason of a rejection has the focus where they left it: the first button rejects. */
function useFocusOnReturn(isRejecting: boolean) {
  const box = useRef<HTMLDivElement>(null)
  const wasRejecting = useRef(false)
  useLayoutEffect(() => {
    if (wasRejecting.current && !isRejecting) box.current?.querySelector('button')?.focus()
    wasRejecting.current = isRejecting
  }, [isRejecting])
  return box
}

interface ChoicesProps {
  readonly approval: Approval
  readonly payloadId: string
  readonly canReject: boolean
  readonly canApprove: boolean
  readonly onApprove: (verb: 'once' | 'session') => void
  readonly onReject: () => void
}

function Choices({ approval, payloadId, canReject, canApprove, onApprove, onReject }: ChoicesProps) {
  return (
    <>
      <button type="button" disabled={!canReject} aria-describedby={payloadId} aria-keyshortcuts="n" onClick={onReject}>
        Reject
      </button>
      {approval.scopes.includes('session') && (
        <button
          type="button"
          disabled={!canApprove}
          aria-describedby={payloadId}
          title={approval.session_covers === null ? undefined : `Covers ${approval.session_covers}`}
          onClick={() => onApprove('session')}
        >
          For this conversation
        </button>
      )}
      {approval.scopes.includes('once') ? (
        <button
          type="button"
          class="primary"
          disabled={!canApprove}
          aria-describedby={payloadId}
          aria-keyshortcuts={approval.form ? undefined : 'y'}
          onClick={() => onApprove('once')}
        >
          {approval.form ? 'Send' : 'Approve once'}
        </button>
      ) : (
        <p class="hint">It holds from then on: whoever has the API key can approve it.</p>
      )}
    </>
  )
}

interface RejectionProps {
  readonly id: string
  readonly working: boolean
  readonly onReject: (reason: string | undefined) => void
  readonly onBack: () => void
}

function Rejection({ id, working, onReject, onBack }: RejectionProps) {
  const [reason, setReason] = useState('')
  const field = useRef<HTMLInputElement>(null)
  // At once: an Escape that meets no field would stop the answer.
  useLayoutEffect(() => field.current?.focus(), [])
  return (
    <form
      class="rejection"
      onSubmit={(event) => {
        event.preventDefault()
        if (!working) onReject(reason.trim() === '' ? undefined : reason.trim())
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        onBack()
      }}
    >
      <label for={`reason-${id}`}>Reason, which the agent reads</label>
      <input
        id={`reason-${id}`}
        ref={field}
        maxLength={MAX_REASON_CHARS}
        placeholder="may be left out"
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
      />
      <button type="button" onClick={onBack}>
        Back
      </button>
      <button type="submit" class="danger" disabled={working}>
        Reject
      </button>
    </form>
  )
}

function Deadline({ expiresAt, now }: { readonly expiresAt: string; readonly now: number }) {
  const seconds = Math.max(0, Math.ceil((Date.parse(expiresAt) - now) / 1000))
  if (seconds === 0) return <p class="hint">The time is up.</p>
  const left = seconds > 120 ? `${Math.ceil(seconds / 60)} min` : `${seconds} s`
  return (
    <p class="hint">
      Counts as rejected in <span role="timer">{left}</span>.
    </p>
  )
}

/** Whether the buttons are too new to be clicked. */
function useClickGuard(): boolean {
  const [guarded, setGuarded] = useState(true)
  useEffect(() => {
    const timer = setTimeout(() => setGuarded(false), CLICK_GUARD_MS)
    return () => clearTimeout(timer)
  }, [])
  return guarded
}
