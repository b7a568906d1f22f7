import type { AgentChat } from './agent-chat.ts'
import { ProblemBanner } from './problem.tsx'
import { LastMessage } from './last-message.tsx'
import { AnswerItem, QuestionItem } from './message.tsx'
import { useValue } from './observable.ts'
import type { StickyScroll } from './sticky-scroll.ts'
import { openAnswer } from './transcript.ts'
import type { Answer } from './transcript.ts'
import { Welcome } from './welcome.tsx'
import type { AgentSummary } from './wire.ts'

interface EntryListProps {
  readonly chat: AgentChat
  readonly agent: AgentSummary
  /** How the daemon is called on the command line. */
  readonly command: string
  readonly scroll: StickyScroll
  readonly onSend: (text: string) => void
  /** Opens what connects a model. */
  readonly onConnect: () => void
  readonly onEarlier: () => void
}

/** The messages of the conversation in view, or why there are none. */
export function EntryList({ chat, agent, command, scroll, onSend, onConnect, onEarlier }: EntryListProps) {
  const { entries } = useValue(chat.transcript)
  const history = useValue(chat.history)
  const hasEarlier = useValue(chat.more)
  const reload = (): void => void chat.load()
  return (
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
          <ProblemBanner
            problem={`The conversation could not be loaded. ${history.problem}`}
            action="Try again"
            onAction={reload}
          />
        )}
        {history === 'loaded' && entries.length === 0 && (
          <Welcome agent={agent} command={command} onSend={onSend} onConnect={onConnect} />
        )}
        {hasEarlier && (
          <button type="button" class="quiet earlier" disabled={chat.busy} onClick={onEarlier}>
            Show earlier messages
          </button>
        )}
        <Entries chat={chat} name={agent.name} onFollow={scroll.follow} />
        <LastMessage
          chat={chat}
          onAgain={() => {
            scroll.follow()
            chat.askAgain()
          }}
        />
      </div>
    </section>
  )
}

interface EntriesProps {
  readonly chat: AgentChat
  readonly name: string
  /** Scrolls along with the next answer. */
  readonly onFollow: () => void
}

function Entries({ chat, name, onFollow }: EntriesProps) {
  const transcript = useValue(chat.transcript)
  const turnStatus = useValue(chat.turnStatus.text)
  const known = useValue(chat.known)
  const { entries } = transcript
  const openId = openAnswer(transcript)?.id
  return (
    <ol class="entries">
      {entries.map((entry, index) =>
        entry.kind === 'question' ? (
          <QuestionItem key={entry.id} question={entry} />
        ) : (
          <AnswerItem
            key={entry.id}
            answer={entry}
            name={name}
            last={index === entries.length - 1}
            turnStatus={entry.id === openId ? turnStatus : queuedStatus(entry)}
            known={known}
            onRetryTurn={(turnId) => {
              onFollow()
              return chat.retryTurn(turnId)
            }}
            onDropTurn={(turnId) => chat.dropTurn(turnId)}
            onRetry={() => {
              onFollow()
              chat.retry()
            }}
            onReload={() => void chat.load()}
          />
        ),
      )}
    </ol>
  )
}

function queuedStatus({ state, parts }: Answer): string | undefined {
  return state === 'thinking' && parts.length === 0 ? 'It is answered after the one before it.' : undefined
}
