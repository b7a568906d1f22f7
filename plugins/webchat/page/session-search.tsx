import { useEffect, useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { useValue } from './observable.ts'
import { FieldProblem } from './problem.tsx'
import type { FoundMessage, FoundMessages } from './wire.ts'
import './session-search.css'

/** Until typing pauses for this long, nothing is asked. */
const PAUSE_MS = 250

/** What the daemon found for a text; `undefined` until it answered. */
export function useSearch(client: Client, text: string) {
  const [found, setFound] = useState<FoundMessages>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    setProblem(undefined)
    if (text === '') return setFound(undefined)
    const stop = new AbortController()
    const timer = setTimeout(() => {
      client.api.searchMessages(text, stop.signal).then(setFound, (error: unknown) => {
        if (!stop.signal.aborted) setProblem(explain(error))
      })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [client, text])
  return { found, problem }
}

interface FoundListProps {
  readonly client: Client
  readonly search: ReturnType<typeof useSearch>
  readonly onOpen: (agentId: string, sessionId: string, messageId: string) => void
}

export function FoundList({ client, search: { found, problem }, onOpen }: FoundListProps) {
  const agents = useValue(client.agents)
  const names = new Map(agents.map(({ id, name }) => [id, name]))
  const results = found?.results.filter(({ agent_id: id }) => names.has(id)) ?? []
  return (
    <>
      <FieldProblem problem={problem} />
      <p class="found-count" role="status">
        {problem === undefined && describe(found, results.length)}
      </p>
      <ul aria-label="Messages that were found">
        {results.map((message) => (
          <li key={message.message_id}>
            <FoundItem message={message} agent={names.get(message.agent_id) ?? ''} onOpen={onOpen} />
          </li>
        ))}
      </ul>
    </>
  )
}

function describe(found: FoundMessages | undefined, count: number): string {
  if (!found) return 'Searching …'
  const number = count === 0 ? 'No message has these words' : count === 1 ? 'One message' : `${count} messages`
  return found.complete ? `${number}.` : `${number}. The oldest messages were not searched.`
}

interface FoundItemProps {
  readonly message: FoundMessage
  readonly agent: string
  readonly onOpen: (agentId: string, sessionId: string, messageId: string) => void
}

function FoundItem({ message, agent, onOpen }: FoundItemProps) {
  const {
    agent_id: agentId,
    session_id: sessionId,
    message_id: messageId,
    role,
    label,
    snippet,
    created_at: at,
  } = message
  const who = role === 'user' ? `You to ${agent}` : agent
  const date = new Date(at).toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })
  return (
    <button type="button" class="found" onClick={() => onOpen(agentId, sessionId, messageId)}>
      <span class="found-where">
        {who} · {date}
        {label !== null && ` · ${label}`}
      </span>
      <span class="found-text">{snippet}</span>
    </button>
  )
}
