import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import type { AttachedFile } from './attached.ts'
import { Announcer } from './announcer.tsx'
import { explain } from './api.ts'
import { ApprovalList } from './approval-list.tsx'
import { ChatHeader } from './chat-header.tsx'
import type { Client } from './client.ts'
import { Composer, focusMessageBox } from './composer.tsx'
import { ConversationDialog } from './conversation-dialog.tsx'
import type { DialogName } from './conversation-dialog.tsx'
import { DefaultProblem } from './default-problem.tsx'
import { EntryList } from './entry-list.tsx'
import { GrantList } from './grant-list.tsx'
import { DownIcon } from './icons.tsx'
import { LostBanner } from './link-state.tsx'
import { useValue } from './observable.ts'
import './print.css'
import { ProblemBanner } from './problem.tsx'
import { useStickyScroll } from './sticky-scroll.ts'
import type { StickyScroll } from './sticky-scroll.ts'
import type { Answer } from './transcript.ts'
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
  const command = useValue(client.status)?.command ?? 'svc'
  const pending = useValue(client.approvals.pending)
  const waitingTools = pending.filter(({ agent_id: id }) => id === agent.id).map(({ tool_name: tool }) => tool)
  const [dialog, setDialog] = useState<DialogName>()
  const scroll = useStickyScroll(entries)
  const { problem, dismiss, attempt } = useAttempt()
  const { send, reset, open, move, loadEarlier, branch } = actionsOf({ client, chat, agent, scroll, attempt })
  useStopOnEscape(chat)
  const connect = (): void => setDialog('connect')
  return (
    <main class="conversation" inert={menuOpen}>
      <ChatHeader
        client={client}
        chat={chat}
        agent={agent}
        menuOpen={menuOpen}
        menuButton={menuButton}
        onMenu={onMenu}
        onReset={reset}
        onDialog={setDialog}
        onMove={move}
      />
      <EntryList
        chat={chat}
        agent={agent}
        waitingTools={waitingTools}
        command={command}
        scroll={scroll}
        onSend={send}
        onConnect={connect}
        onEarlier={loadEarlier}
        onBranch={branch}
      />
      <div class="bottom">
        {scroll.away && (
          <button type="button" class="latest" onClick={scroll.toEnd}>
            <DownIcon /> Latest
          </button>
        )}
        <div class="column">
          {problem !== undefined && <ProblemBanner problem={problem} action="Dismiss" onAction={dismiss} />}
          <Notices client={client} chat={chat} agent={agent} onOpen={open} onConnect={connect} />
          <Composer client={client} chat={chat} name={agent.name} onSend={send} />
        </div>
      </div>
      <Announcer name={agent.name} answer={asAnswer(entries.at(-1))} />
      <ConversationDialog name={dialog} client={client} agent={agent} onOpen={setDialog} />
    </main>
  )
}

interface ActionDeps {
  readonly client: Client
  readonly chat: AgentChat
  readonly agent: AgentSummary
  readonly scroll: StickyScroll
  readonly attempt: (failure: string, action: () => Promise<void>) => void
}

function actionsOf({ client, chat, agent, scroll, attempt }: ActionDeps) {
  return {
    send(text: string, files?: readonly AttachedFile[]): void {
      scroll.follow()
      chat.send(text, files)
    },
    reset: (): void =>
      attempt('A new conversation could not be started', async () => {
        await chat.startNew()
        focusMessageBox()
      }),
    open(sessionId: string | undefined): void {
      if (sessionId === undefined) return
      attempt('The conversation could not be opened', async () => {
        await (sessionId === chat.place.value.shown ? chat.stay() : chat.open(sessionId))
        focusMessageBox()
      })
    },
    move: (command: 'suspend' | 'resume'): void =>
      attempt(`${agent.name} could not be ${command === 'suspend' ? 'paused' : 'resumed'}`, () =>
        client.move(agent.id, command),
      ),
    branch: (turnId: string): void =>
      attempt('The conversation could not be branched', async () => {
        await chat.branch(turnId)
        focusMessageBox()
      }),
    loadEarlier: (): void =>
      attempt('Earlier messages could not be loaded', () => scroll.keepPosition(() => chat.loadEarlier())),
  }
}

interface NoticesProps {
  readonly client: Client
  readonly chat: AgentChat
  readonly agent: AgentSummary
  readonly onOpen: (sessionId: string | undefined) => void
  readonly onConnect: () => void
}

/** What needs attention before the next message. */
function Notices({ client, chat, agent, onOpen, onConnect }: NoticesProps) {
  const link = useValue(chat.connection.link)
  const place = useValue(chat.place)
  return (
    <>
      {link.state === 'lost' && <LostBanner link={link} connection={chat.connection} />}
      <DefaultProblem client={client} onConnect={onConnect} />
      <ApprovalList approvals={client.approvals} agentId={agent.id} />
      <GrantList approvals={client.approvals} agentId={agent.id} sessionId={place.shown} />
      {!chat.here && <ElsewhereNotice chat={chat} name={agent.name} onOpen={onOpen} />}
    </>
  )
}

interface ElsewhereNoticeProps {
  readonly chat: AgentChat
  readonly name: string
  readonly onOpen: (sessionId: string | undefined) => void
}

/** Shown when messages would go to another conversation than the one in view. */
function ElsewhereNotice({ chat, name, onOpen }: ElsewhereNoticeProps) {
  const { shown, active } = useValue(chat.place)
  const activeTitle = useValue(chat.sessions).find(({ id }) => id === active)?.title ?? ''
  return (
    <div class="elsewhere" role="status">
      <p>
        {name} is in another conversation now
        {activeTitle === '' ? '' : `, “${activeTitle}”`}. Nothing is sent to this one before you choose.
      </p>
      <button type="button" onClick={() => onOpen(active)}>
        Go to that one
      </button>
      <button type="button" onClick={() => onOpen(shown)}>
        Continue here
      </button>
    </div>
  )
}

/** Runs actions and keeps the problem of the last one that failed. */
function useAttempt() {
  const [problem, setProblem] = useState<string>()
  const attempt = (failure: string, action: () => Promise<void>): void => {
    setProblem(undefined)
    action().catch((error: unknown) => setProblem(`${failure}: ${explain(error)}`))
  }
  return { problem, attempt, dismiss: () => setProblem(undefined) }
}

function useStopOnEscape(chat: AgentChat): void {
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
}

function asAnswer(entry: { readonly kind: string } | Answer | undefined): Answer | undefined {
  return entry && 'parts' in entry ? entry : undefined
}
