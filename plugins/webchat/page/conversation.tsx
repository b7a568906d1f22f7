import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import { modelLabel } from './agents.tsx'
import { explain } from './api.ts'
import { ApprovalList } from './approval-list.tsx'
import type { Client } from './client.ts'
import { Composer, focusMessageBox } from './composer.tsx'
import { DefaultProblem } from './default-problem.tsx'
import { GrantList } from './grant-list.tsx'
import { DownIcon, FreshIcon, MenuIcon, TrashIcon, WarningIcon } from './icons.tsx'
import { LinkState, LostBanner } from './link-state.tsx'
import { AnswerItem, QuestionItem } from './message.tsx'
import { useValue } from './observable.ts'
import { RemoveAgent } from './remove-agent.tsx'
import { openAnswer, textOf } from './transcript.ts'
import type { Answer } from './transcript.ts'
import { Welcome } from './welcome.tsx'
import type { AgentSummary } from './wire.ts'

interface ConversationProps {
  readonly client: Client
  readonly chat: AgentChat
  readonly agent: AgentSummary
  readonly menuOpen: boolean
  readonly menuButton: RefObject<HTMLButtonElement | null>
  readonly onMenu: () => void
}

export function Conversation({ client, chat, agent, menuOpen, menuButton, onMenu }: ConversationProps) {
  const { entries } = useValue(chat.transcript)
  const history = useValue(chat.history)
  const more = useValue(chat.more)
  const turnStatus = useValue(chat.turnStatus.text)
  const known = useValue(chat.known)
  const place = useValue(chat.place)
  const sessions = useValue(chat.sessions)
  const elsewhere = place.shown !== undefined && place.active !== undefined && place.shown !== place.active
  const link = useValue(chat.connection.link)
  const commands = useValue(client.commands)
  const command = useValue(client.status)?.command ?? 'svc'
  const [removing, setRemoving] = useState(false)
  const [problem, setProblem] = useState<string>()
  const scroll = useStickyScroll(entries)
  const busy = chat.busy
  const openId = openAnswer(chat.transcript.value)?.id

  useEffect(() => {
    const stopOnEscape = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && chat.busy && !event.defaultPrevented) {
        event.preventDefault()
        void chat.stop()
      }
    }
    document.addEventListener('keydown', stopOnEscape)
    return () => document.removeEventListener('keydown', stopOnEscape)
  }, [chat])

  const send = (text: string): void => {
    scroll.follow()
    chat.send(text)
  }
  const reset = async (): Promise<void> => {
    try {
      setProblem(undefined)
      await chat.reset()
      focusMessageBox()
    } catch (error) {
      setProblem(`A new conversation could not be started: ${explain(error)}`)
    }
  }

  const titleOfActive = sessions.find(({ id }) => id === place.active)?.title ?? ''
  const go = async (sessionId: string | undefined): Promise<void> => {
    if (sessionId === undefined) return
    try {
      setProblem(undefined)
      if (sessionId === place.shown) await chat.stay()
      else await chat.open(sessionId)
      focusMessageBox()
    } catch (error) {
      setProblem(`The conversation could not be opened: ${explain(error)}`)
    }
  }
  const earlier = async (): Promise<void> => {
    const before = scroll.frame.current?.scrollHeight ?? 0
    try {
      await chat.loadEarlier()
      requestAnimationFrame(() => {
        if (scroll.frame.current) scroll.frame.current.scrollTop += scroll.frame.current.scrollHeight - before
      })
    } catch (error) {
      setProblem(`Earlier messages could not be loaded: ${explain(error)}`)
    }
  }

  return (
    <main class="conversation" inert={menuOpen}>
      <header class="top">
        <button
          type="button"
          ref={menuButton}
          class="quiet square only-narrow"
          aria-expanded={menuOpen}
          aria-controls="agents"
          onClick={onMenu}
        >
          <MenuIcon />
          <span class="hidden">Agents</span>
        </button>
        <div class="top-title">
          <h1>{agent.name}</h1>
          <p class="top-model">{modelLabel(agent)}</p>
        </div>
        <LinkState link={link} />
        <button type="button" class="quiet" disabled={busy || entries.length === 0} onClick={() => void reset()}>
          <FreshIcon />
          <span class="wide-label">New conversation</span>
        </button>
        <button type="button" class="quiet square" onClick={() => setRemoving(true)}>
          <TrashIcon />
          <span class="hidden">Delete {agent.name}</span>
        </button>
      </header>

      <section
        ref={scroll.frame}
        class="scroll"
        aria-label={`Conversation with ${agent.name}`}
        tabIndex={0}
        onScroll={scroll.onScroll}
      >
        <div class="column">
          {history === 'loading' && entries.length === 0 && (
            <p class="aside" role="status">
              Loading the conversation …
            </p>
          )}
          {typeof history === 'object' && (
            <div class="problem" role="alert">
              <WarningIcon />
              <p>The conversation could not be loaded. {history.problem}</p>
              <button type="button" onClick={() => void chat.load()}>
                Try again
              </button>
            </div>
          )}
          {history === 'loaded' && entries.length === 0 && <Welcome agent={agent} command={command} onSend={send} />}
          {more && (
            <button type="button" class="quiet earlier" disabled={busy} onClick={() => void earlier()}>
              Show earlier messages
            </button>
          )}
          <ol class="entries">
            {entries.map((entry, at) =>
              entry.kind === 'question' ? (
                <QuestionItem key={entry.id} question={entry} />
              ) : (
                <AnswerItem
                  key={entry.id}
                  answer={entry}
                  name={agent.name}
                  last={at === entries.length - 1}
                  turnStatus={
                    entry.id === openId
                      ? turnStatus
                      : isWaiting(entry)
                        ? 'It is answered after the one before it.'
                        : undefined
                  }
                  known={known}
                  onRetryTurn={(turnId) => {
                    scroll.follow()
                    return chat.retryTurn(turnId)
                  }}
                  onDropTurn={(turnId) => chat.dropTurn(turnId)}
                  onRetry={() => {
                    scroll.follow()
                    chat.retry()
                  }}
                  onReload={() => void chat.load()}
                />
              ),
            )}
          </ol>
        </div>
      </section>

      <div class="bottom">
        {scroll.away && (
          <button type="button" class="latest" onClick={scroll.toEnd}>
            <DownIcon /> Latest
          </button>
        )}
        <div class="column">
          {problem !== undefined && (
            <div class="problem" role="alert">
              <WarningIcon />
              <p>{problem}</p>
              <button type="button" onClick={() => setProblem(undefined)}>
                Dismiss
              </button>
            </div>
          )}
          {link.state === 'lost' && <LostBanner link={link} connection={chat.connection} />}
          <DefaultProblem client={client} />
          <ApprovalList approvals={client.approvals} agentId={agent.id} />
          <GrantList approvals={client.approvals} agentId={agent.id} sessionId={place.shown} />
          {elsewhere && (
            <div class="elsewhere" role="status">
              <p>
                {agent.name} is in another conversation now
                {titleOfActive === '' ? '' : `, “${titleOfActive}”`}. Nothing is sent to this one before you choose.
              </p>
              <button type="button" onClick={() => void go(place.active)}>
                Go to that one
              </button>
              <button type="button" onClick={() => void go(place.shown)}>
                Continue here
              </button>
            </div>
          )}
          <Composer
            commands={commands}
            chat={chat}
            name={agent.name}
            busy={busy}
            elsewhere={elsewhere}
            onSend={send}
            onStop={() => void chat.stop()}
          />
        </div>
      </div>
      <Announcer name={agent.name} answer={lastAnswer(entries.at(-1))} />
      {removing && <RemoveAgent client={client} agent={agent} onClose={() => setRemoving(false)} />}
    </main>
  )
}

const isWaiting = ({ state, parts }: Answer): boolean => state === 'thinking' && parts.length === 0
function lastAnswer(entry: { readonly kind: string } | Answer | undefined): Answer | undefined {
  return entry && 'parts' in entry ? entry : undefined
}

/**
 * Tells a screen reader that an answer has begun and, once, what it was: not every token. Problems speak for
 * themselves.
 */
function Announcer({ name, answer }: { readonly name: string; readonly answer: Answer | undefined }) {
  const [said, setSaid] = useState('')
  const open = useRef<number | undefined>(undefined)
  useEffect(() => {
    if (answer?.state === 'thinking') {
      open.current = answer.id
      setSaid(`${name} is thinking`)
    } else if (answer && open.current === answer.id && answer.state !== 'streaming') {
      open.current = undefined
      setSaid(
        answer.state === 'done'
          ? `${name} answered: ${textOf(answer.parts)
              .replace(/[*_`#>|]/g, '')
              .slice(0, 2000)}`
          : answer.state === 'stopped'
            ? 'Answer stopped'
            : '',
      )
    }
  }, [answer?.id, answer?.state])
  return (
    <p class="hidden" role="status" aria-live="polite" aria-atomic="true">
      {said}
    </p>
  )
}

/** Keeps the end in view while the reader is there, and leaves a reader who scrolled back in peace. */
function useStickyScroll(entries: readonly unknown[]) {
  const frame = useRef<HTMLElement>(null)
  const following = useRef(true)
  const lastTop = useRef(0)
  const [away, setAway] = useState(false)
  const toEnd = (): void => {
    following.current = true
    if (frame.current) frame.current.scrollTop = frame.current.scrollHeight
  }
  useLayoutEffect(() => {
    if (entries.length > 0) {
      if (following.current) toEnd()
      return
    }
    // What greets a newcomer is read from its top.
    following.current = true
    if (frame.current) frame.current.scrollTop = 0
  }, [entries])
  useEffect(() => {
    const column = frame.current?.firstElementChild
    if (!column) return
    const observer = new ResizeObserver(() => {
      if (following.current && frame.current?.querySelector('.entries > li')) toEnd()
    })
    observer.observe(column)
    if (frame.current) observer.observe(frame.current)
    return () => observer.disconnect()
  }, [])
  const onScroll = (): void => {
    const at = frame.current
    if (!at) return
    // Only who scrolls back stops following: the end may also be further away because something came up below.
    following.current =
      at.scrollHeight - at.scrollTop - at.clientHeight < 60 || (following.current && at.scrollTop >= lastTop.current)
    lastTop.current = at.scrollTop
    setAway(!following.current && at.querySelector('.entries > li') !== null)
  }
  return {
    frame,
    away,
    toEnd,
    onScroll,
    follow: () => {
      following.current = true
    },
  }
}
