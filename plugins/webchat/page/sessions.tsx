import { useEffect, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import { explain } from './api.ts'
import { Dialog } from './dialog.tsx'
import { PencilIcon, TrashIcon, WarningIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import type { SessionItem } from './wire.ts'

const firstShown = 20

/** The conversations with the agent in view, the newest first. */
export function SessionList({ chat, onOpen }: { readonly chat: AgentChat; readonly onOpen: () => void }) {
  const sessions = useValue(chat.sessions)
  const place = useValue(chat.place)
  const [most, setMost] = useState(firstShown)
  const [problem, setProblem] = useState<string>()
  const [changing, setChanging] = useState<{ readonly what: 'rename' | 'delete'; readonly session: SessionItem }>()
  useEffect(() => {
    setMost(firstShown)
    setProblem(undefined)
  }, [chat])
  // An empty one that nobody is in has nothing to go back to.
  const listed = sessions.filter(
    ({ id, message_count: messages, label }) =>
      messages > 0 || label !== null || id === place.active || id === place.shown,
  )
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
      {problem !== undefined && (
        <p class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      )}
      <ul>
        {listed.slice(0, most).map((session) => (
          <li key={session.id} class="session">
            <button
              type="button"
              class="session-open"
              aria-current={session.id === place.shown ? 'true' : undefined}
              title={titleOf(session)}
              onClick={() => void open(session.id)}
            >
              <span class="session-title">{titleOf(session)}</span>
              <span class="session-time">{dayOf(session.created_at)}</span>
            </button>
            <button
              type="button"
              class="quiet square session-act"
              onClick={() => setChanging({ what: 'rename', session })}
            >
              <PencilIcon />
              <span class="hidden">Rename {titleOf(session)}</span>
            </button>
            <button
              type="button"
              class="quiet square session-act"
              onClick={() => setChanging({ what: 'delete', session })}
            >
              <TrashIcon />
              <span class="hidden">Delete {titleOf(session)}</span>
            </button>
          </li>
        ))}
      </ul>
      {listed.length > most && (
        <button type="button" class="quiet add" onClick={() => setMost(most + 100)}>
          Show {Math.min(100, listed.length - most)} more
        </button>
      )}
      {changing?.what === 'rename' && (
        <Rename chat={chat} session={changing.session} onClose={() => setChanging(undefined)} />
      )}
      {changing?.what === 'delete' && (
        <Remove chat={chat} session={changing.session} onClose={() => setChanging(undefined)} />
      )}
    </section>
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
function Rename({ chat, session, onClose }: ChangeProps) {
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
      {problem !== undefined && (
        <p class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      )}
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
function Remove({ chat, session, onClose }: ChangeProps) {
  const { problem, working, run } = useAction(onClose)
  return (
    <Dialog title="Delete this conversation?" onClose={onClose} onSubmit={() => run(() => chat.remove(session.id))}>
      <p>
        “{titleOf(session)}” goes with its {session.message_count}{' '}
        {session.message_count === 1 ? 'message' : 'messages'}. This cannot be undone.
      </p>
      {problem !== undefined && (
        <p class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      )}
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
