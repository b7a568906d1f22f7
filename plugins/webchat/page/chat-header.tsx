import type { RefObject } from 'preact'
import type { AgentChat } from './agent-chat.ts'
import { AgentMenu } from './agent-menu.tsx'
import { modelLabel } from './agents.tsx'
import './chat-header.css'
import type { Client } from './client.ts'
import type { DialogName } from './conversation-dialog.tsx'
import { ChevronIcon, FreshIcon, MenuIcon } from './icons.tsx'
import { LinkState } from './link-state.tsx'
import { useValue } from './observable.ts'
import type { AgentSummary } from './wire.ts'

interface HeaderProps {
  readonly client: Client
  readonly chat: AgentChat
  readonly agent: AgentSummary
  readonly menuOpen: boolean
  readonly menuButton: RefObject<HTMLButtonElement | null>
  readonly onMenu: () => void
  readonly onReset: () => void
  readonly onDialog: (name: DialogName) => void
  readonly onMove: (command: 'suspend' | 'resume') => void
}

export function ChatHeader(props: HeaderProps) {
  const { client, chat, agent, menuOpen, menuButton, onMenu, onReset, onDialog, onMove } = props
  const editUrl = useValue(client.pages).find(({ plugin }) => plugin === 'agents')?.url
  const { entries } = useValue(chat.transcript)
  const link = useValue(chat.connection.link)
  return (
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
        <button type="button" class="top-model" aria-haspopup="dialog" onClick={() => onDialog('model')}>
          <span class="hidden">Model: </span>
          <span class="top-model-name">{modelLabel(agent)}</span>
          <ChevronIcon />
        </button>
      </div>
      {agent.state === 'Paused' && <span class="paused">paused</span>}
      <LinkState link={link} />
      <button type="button" class="quiet" disabled={entries.length === 0} onClick={onReset}>
        <FreshIcon />
        <span class="wide-label">New conversation</span>
      </button>
      <AgentMenu agent={agent} editUrl={editUrl} onDialog={onDialog} onMove={onMove} />
    </header>
  )
}
