import { useEffect, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { exportSession } from './export.ts'
import type { ExportFormat } from './export.ts'
import { PinIcon } from './icons.tsx'
import { Menu } from './menu.tsx'
import { useValue } from './observable.ts'
import { FieldProblem } from './problem.tsx'
import { FoundList, useSearch } from './session-search.tsx'
import { titleOf } from './session-title.ts'
import type { SessionItem } from './wire.ts'
import './sessions.css'

const INITIAL_COUNT = 20
const MORE_COUNT = 100

interface SessionListProps {
  readonly client: Client
  readonly chat: AgentChat
  readonly onOpen: () => void
}

/** The conversations with the agent in view, or the messages of all agents that have what is searched for. */
export function SessionList({ client, chat, onOpen }: SessionListProps) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string>()
  const wanted = text.trim()
  const search = useSearch(client, wanted)
  useEffect(() => setProblem(undefined), [chat])
  const attempt = (action: () => Promise<void>): void => {
    setProblem(undefined)
    action().catch((error: unknown) => setProblem(explain(error)))
  }
  const open = (agentId: string, sessionId: string, messageId?: string): void =>
    attempt(async () => {
      await client.openSession(agentId, sessionId, messageId)
      onOpen()
    })
  return (
    <section class="sessions" aria-labelledby="sessions-title">
      <h2 id="sessions-title" class="section">
        Conversations
      </h2>
      <input
        type="search"
        class="side-search"
        aria-label="Search all messages"
        placeholder="Search all messages"
        autocomplete="off"
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || text === '') return
          event.stopPropagation()
          setText('')
        }}
      />
      <FieldProblem problem={problem} />
      {wanted === '' ? (
        <Sessions key={chat.agentId} client={client} chat={chat} attempt={attempt} onOpen={open} />
      ) : (
        <FoundList client={client} search={search} onOpen={open} />
      )}
    </section>
  )
}

interface SessionsProps {
  readonly client: Client
  readonly chat: AgentChat
  /** Shows what the daemon refuses. */
  readonly attempt: (action: () => Promise<void>) => void
  readonly onOpen: (agentId: string, sessionId: string) => void
}

function Sessions({ client, chat, attempt, onOpen }: SessionsProps) {
  const sessions = useListedSessions(client, chat)
  const [limit, setLimit] = useState(INITIAL_COUNT)
  const [renamed, setRenamed] = useState<SessionItem>()
  const { shown } = useValue(chat.place)
  return (
    <>
      <ul>
        {sessions.slice(0, limit).map((session) => (
          <SessionRow
            key={session.id}
            client={client}
            chat={chat}
            session={session}
            isShown={session.id === shown}
            attempt={attempt}
            onOpen={() => onOpen(chat.agentId, session.id)}
            onRename={() => setRenamed(session)}
          />
        ))}
      </ul>
      {sessions.length > limit && (
        <button type="button" class="quiet add" onClick={() => setLimit(limit + MORE_COUNT)}>
          Show {Math.min(MORE_COUNT, sessions.length - limit)} more
        </button>
      )}
      {renamed && <RenameDialog chat={chat} session={renamed} onClose={() => setRenamed(undefined)} />}
    </>
  )
}

/**
 * The pinned ones first, and each newest first. Leaves out empty conversations that are not active: there is nothing to
 * go back to.
 */
function useListedSessions(client: Client, chat: AgentChat): readonly SessionItem[] {
  const { shown, active } = useValue(chat.place)
  const pins = useValue(client.pins)
  const deletion = useValue(client.deletions.pending)
  return useValue(chat.sessions)
    .filter(({ id, message_count: messages, label }) => messages > 0 || label !== null || id === active || id === shown)
    .filter(({ id }) => id !== deletion?.session.id || deletion.problem !== undefined)
    .toSorted((one, other) => Number(pins.has(other.id)) - Number(pins.has(one.id)))
}

interface SessionRowProps {
  readonly client: Client
  readonly chat: AgentChat
  readonly session: SessionItem
  readonly isShown: boolean
  readonly attempt: (action: () => Promise<void>) => void
  readonly onOpen: () => void
  readonly onRename: () => void
}

function SessionRow({ client, chat, session, isShown, attempt, onOpen, onRename }: SessionRowProps) {
  const title = titleOf(session)
  const isPinned = useValue(client.pins).has(session.id)
  const saveAs = (format: ExportFormat): void =>
    attempt(async () => {
      const agent = client.agents.value.find(({ id }) => id === chat.agentId)
      exportSession(await client.api.wholeSession(session.id), agent?.name ?? 'Agent', format)
    })
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
        {isPinned && (
          <span class="session-pin">
            <PinIcon />
            <span class="hidden">Pinned</span>
          </span>
        )}
        <span class="session-time">{dayOf(session.created_at)}</span>
      </button>
      <Menu
        label={`Actions for ${title}`}
        items={[
          { label: isPinned ? 'Unpin' : 'Pin', onSelect: () => client.pins.toggle(session.id) },
          { label: 'Rename', onSelect: onRename },
          { label: 'Export as Markdown', onSelect: () => saveAs('Markdown') },
          { label: 'Export as JSON', onSelect: () => saveAs('JSON') },
          { label: 'Delete', onSelect: () => attempt(() => client.deletions.add(chat, session)) },
        ]}
      />
    </li>
  )
}

function dayOf(at: string): string {
  const date = new Date(at)
  const today = new Date()
  return date.toDateString() === today.toDateString()
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { day: 'numeric', month: 'short' })
}

interface RenameDialogProps {
  readonly chat: AgentChat
  readonly session: SessionItem
  readonly onClose: () => void
}
function RenameDialog({ chat, session, onClose }: RenameDialogProps) {
  const [label, setLabel] = useState(session.label ?? session.title)
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)
  const rename = (): void => {
    if (working) return
    setWorking(true)
    chat.rename(session.id, label.trim() === '' ? null : label.trim()).then(onClose, (error: unknown) => {
      setProblem(explain(error))
      setWorking(false)
    })
  }
  return (
    <Dialog title="Rename this conversation" onClose={onClose} onSubmit={rename}>
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
