import { useEffect, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import { explain } from './api.ts'
import { Dialog } from './dialog.tsx'
import { PencilIcon, TrashIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import { FieldProblem } from './problem.tsx'
import type { SessionItem } from './wire.ts'

const INITIAL_COUNT = 20
const MORE_COUNT = 100

/** The conversations with the agent in view, the newest first. */
export function SessionList({ chat, onOpen }: { readonly chat: AgentChat; readonly onOpen: () => void }) {
  const sessions = useListedSessions(chat)
  const [limit, setLimit] = useState(INITIAL_COUNT)
  const [problem, setProblem] = useState<string>()
  const [change, setChange] = useState<SessionChange>()
  const { shown } = useValue(chat.place)
  useEffect(() => {
    setLimit(INITIAL_COUNT)
    setProblem(undefined)
  }, [chat])
  const open = async (sessionId: string): Promise<void> => {
    setProblem(undefined)
    try {
      await chat.open(sessionId)
      onOpen()
    } catch (error) {
      setProblem(explain(error))
    }
  }
  return (
    <section class="sessions" aria-labelledby="sessions-title">
      <h2 id="sessions-title" class="section">
        Conversations
      </h2>
      <FieldProblem problem={problem} />
      <ul>
        {sessions.slice(0, limit).map((session) => (
          <SessionRow
            key={session.id}
            session={session}
            isShown={session.id === shown}
            onOpen={() => void open(session.id)}
            onChange={(kind) => setChange({ kind, session })}
          />
        ))}
      </ul>
      {sessions.length > limit && (
        <button type="button" class="quiet add" onClick={() => setLimit(limit + MORE_COUNT)}>
          Show {Math.min(MORE_COUNT, sessions.length - limit)} more
        </button>
      )}
      {change?.kind === 'rename' && (
        <RenameDialog chat={chat} session={change.session} onClose={() => setChange(undefined)} />
      )}
      {change?.kind === 'delete' && (
        <DeleteDialog chat={chat} session={change.session} onClose={() => setChange(undefined)} />
      )}
    </section>
  )
}

type ChangeKind = 'rename' | 'delete'
interface SessionChange {
  readonly kind: ChangeKind
  readonly session: SessionItem
}

/** Leaves out empty conversations that are not active: there is nothing to go back to. */
function useListedSessions(chat: AgentChat): readonly SessionItem[] {
  const { shown, active } = useValue(chat.place)
  return useValue(chat.sessions).filter(
    ({ id, message_count: messages, label }) => messages > 0 || label !== null || id === active || id === shown,
  )
}

interface SessionRowProps {
  readonly session: SessionItem
  readonly isShown: boolean
  readonly onOpen: () => void
  readonly onChange: (kind: ChangeKind) => void
}

function SessionRow({ session, isShown, onOpen, onChange }: SessionRowProps) {
  const title = titleOf(session)
  return (
    <li class="session">
      <button
        type="button"
        class="session-open"
        aria-current={isShown ? 'true' : undefined}
        title={title}
        onClick={onOpen}
      >
        <span class="session-title">{title}</span>
        <span class="session-time">{dayOf(session.created_at)}</span>
      </button>
      <button type="button" class="quiet square session-act" onClick={() => onChange('rename')}>
        <PencilIcon />
        <span class="hidden">Rename {title}</span>
      </button>
      <button type="button" class="quiet square session-act" onClick={() => onChange('delete')}>
        <TrashIcon />
        <span class="hidden">Delete {title}</span>
      </button>
    </li>
  )
}

function titleOf({ title }: SessionItem): string {
  return title === '' ? 'No messages yet' : title
}
function dayOf(at: string): string {
  const date = new Date(at)
  const today = new Date()
  return date.toDateString() === today.toDateString()
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { day: 'numeric', month: 'short' })
}

interface ChangeProps {
  readonly chat: AgentChat
  readonly session: SessionItem
  readonly onClose: () => void
}
function RenameDialog({ chat, session, onClose }: ChangeProps) {
  const [label, setLabel] = useState(session.label ?? session.title)
  const { problem, working, run } = useAction(onClose)
  return (
    <Dialog
      title="Rename this conversation"
      onClose={onClose}
      onSubmit={() => run(() => chat.rename(session.id, label.trim() === '' ? null : label.trim()))}
    >
      <label for="session-label">Name</label>
      <input
        id="session-label"
        value={label}
        maxLength={128}
        autocomplete="off"
        aria-describedby="session-label-hint"
        onInput={(event) => setLabel(event.currentTarget.value)}
      />
      <p id="session-label-hint" class="hint">
        Without a name it is called by how its first message begins.
      </p>
      <FieldProblem problem={problem} />
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={working}>
          Rename
        </button>
      </div>
    </Dialog>
  )
}
function DeleteDialog({ chat, session, onClose }: ChangeProps) {
  const { problem, working, run } = useAction(onClose)
  return (
    <Dialog title="Delete this conversation?" onClose={onClose} onSubmit={() => run(() => chat.remove(session.id))}>
      <p>
        “{titleOf(session)}” goes with its {session.message_count}{' '}
        {session.message_count === 1 ? 'message' : 'messages'}. This cannot be undone.
      </p>
      <FieldProblem problem={problem} />
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={onClose}>
          Keep it
        </button>
        <button type="submit" class="danger" disabled={working}>
          Delete
        </button>
      </div>
    </Dialog>
  )
}
function useAction(onDone: () => void) {
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)
  const run = (action: () => Promise<void>): void => {
    if (working) return
    setWorking(true)
    action().then(onDone, (error: unknown) => {
      setProblem(explain(error))
      setWorking(false)
    })
  }
  return { problem, working, run }
}
