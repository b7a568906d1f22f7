import type { AgentChat } from './agent-chat.ts'
import { useEffect } from 'preact/hooks'
import { ProblemBanner } from './problem.tsx'
import { LastMessage } from './last-message.tsx'
import { AnswerItem, itemId, QuestionItem } from './message.tsx'
import { useValue } from './observable.ts'
import type { StickyScroll } from './sticky-scroll.ts'
import { openAnswer } from './transcript.ts'
import type { Answer } from './transcript.ts'
import { Welcome } from './welcome.tsx'
import type { AgentSummary } from './wire.ts'

interface EntryListProps {
  readonly chat: AgentChat
  readonly agent: AgentSummary
  /** The tools that the agent has asked an approval for. */
  readonly waitingTools: readonly string[]
  /** How the daemon is called on the command line. */
  readonly command: string
  readonly scroll: StickyScroll
  readonly onSend: (text: string) => void
  /** Opens what connects a model. */
  readonly onConnect: () => void
  readonly onEarlier: () => void
  readonly onBranch: (turnId: string) => void
}

/** The messages of the conversation in view, or why there are none. */
export function EntryList(props: EntryListProps) {
  const { chat, agent, waitingTools, command, scroll, onSend, onConnect, onEarlier, onBranch } = props
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
        <Entries chat={chat} name={agent.name} waitingTools={waitingTools} scroll={scroll} onBranch={onBranch} />
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
  readonly waitingTools: readonly string[]
  readonly scroll: StickyScroll
  readonly onBranch: (turnId: string) => void
}

function Entries({ chat, name, waitingTools, scroll, onBranch }: EntriesProps) {
  const transcript = useValue(chat.transcript)
  const turnStatus = useValue(chat.turnStatus.text)
  const known = useValue(chat.known)
  const found = useValue(chat.revealed)
  const { entries } = transcript
  useEffect(() => {
    const item = found && document.getElementById(itemId({ id: found.entryId }))
    if (item) scroll.show(item)
  }, [found])
  const openId = openAnswer(transcript)?.id
  return (
    <ol class="entries">
      {entries.map((entry, index) =>
        entry.kind === 'question' ? (
          <QuestionItem key={entry.id} question={entry} isFound={entry.id === found?.entryId} />
        ) : (
          <AnswerItem
            key={entry.id}
            answer={entry}
            name={name}
            last={index === entries.length - 1}
            turnStatus={entry.id === openId ? turnStatus : queuedStatus(entry)}
            waitingTools={waitingTools}
            known={known}
            isFound={entry.id === found?.entryId}
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
            onBranch={onBranch}
          />
        ),
      )}
    </ol>
  )
}

function queuedStatus({ state, parts }: Answer): string | undefined {
  return state === 'thinking' && parts.length === 0 ? 'It is answered after the one before it.' : undefined
}
