import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Client } from './client.ts'
import { CloseIcon, Mark, PlusIcon, SlidersIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import { FieldProblem } from './problem.tsx'
import { SessionList } from './sessions.tsx'
import { UndoNotice } from './undo-notice.tsx'
import type { AgentSummary } from './wire.ts'
import './agents.css'

/** With more agents than these, the list has a search. */
const MANY_AGENTS = 6

interface AgentsProps {
  readonly client: Client
  readonly agents: readonly AgentSummary[]
  readonly selectedId: string | undefined
  /** Whether the drawer of a narrow screen is open; a wide screen always shows the list. */
  readonly open: boolean
  readonly onSelect: (id: string) => void
  readonly onAdd: () => void
  readonly onClose: () => void
}

export function Agents({ client, agents, selectedId, open, onSelect, onAdd, onClose }: AgentsProps) {
  const chat = useValue(client.selected)
  const drawer = useRef<HTMLElement>(null)
  useDrawer(drawer, open, onClose)
  return (
    <>
      {open && <div class="shade" onClick={onClose} />}
      <nav ref={drawer} id="agents" class={open ? 'agents open' : 'agents'} aria-label="Agents">
        <div class="brand">
          <Mark />
          <span>svc</span>
          <button type="button" class="quiet square only-narrow" onClick={onClose}>
            <CloseIcon />
            <span class="hidden">Close the list</span>
          </button>
        </div>
        <h2 class="section">Agents</h2>
        <AgentList client={client} agents={agents} selectedId={selectedId} onSelect={onSelect} />
        <button type="button" class="quiet add" onClick={onAdd}>
          <PlusIcon /> New agent
        </button>
        {chat && <SessionList client={client} chat={chat} onOpen={onClose} />}
        <ManageLink client={client} />
        <SignedIn client={client} />
      </nav>
      <UndoNotice client={client} />
    </>
  )
}

/** Focuses the open drawer, and closes it on Escape before anything else handles the key. */
function useDrawer(drawer: { readonly current: HTMLElement | null }, open: boolean, onClose: () => void): void {
  useEffect(() => {
    if (!open) return
    drawer.current?.querySelector<HTMLElement>('[aria-current], button')?.focus()
    const closeOnEscape = (event: KeyboardEvent): void => {
      // A menu that is open closes first.
      if (event.key !== 'Escape' || document.querySelector(':popover-open')) return
      event.preventDefault()
      onClose()
    }
    document.addEventListener('keydown', closeOnEscape, { capture: true })
    return () => document.removeEventListener('keydown', closeOnEscape, { capture: true })
  }, [open])
}

function AgentList({
  client,
  agents,
  selectedId,
  onSelect,
}: Pick<AgentsProps, 'client' | 'agents' | 'selectedId' | 'onSelect'>) {
  const answering = useValue(client.answering)
  const [filter, setFilter] = useState('')
  const list = useRef<HTMLUListElement>(null)
  useNewInView(list, agents)
  const shown = agents.filter(({ name }) => name.toLowerCase().includes(filter.trim().toLowerCase()))
  const waitingForApproval = new Set(useValue(client.approvals.pending).map(({ agent_id: id }) => id))
  const activityOf = (id: string): string | undefined => {
    if (waitingForApproval.has(id)) return 'asks you'
    return id !== selectedId && answering.has(id) ? 'answering' : undefined
  }
  const select = (id: string): void => {
    setFilter('')
    onSelect(id)
  }
  return (
    <>
      {agents.length > MANY_AGENTS && (
        <AgentSearch filter={filter} first={shown[0]} onInput={setFilter} onSelect={select} />
      )}
      <ul ref={list} aria-label="Agents">
        {shown.map((agent) => (
          <li key={agent.id}>
            <button
              type="button"
              class="agent"
              aria-current={agent.id === selectedId ? 'true' : undefined}
              onClick={() => select(agent.id)}
            >
              <Avatar name={agent.name} />
              <span class="agent-text">
                <span class="agent-name">{agent.name}</span>
                <span class="agent-model">{modelLabel(agent)}</span>
              </span>
              {agent.state !== 'Running' && <span class="state">{agent.state}</span>}
              {activityOf(agent.id) !== undefined && <span class="state">{activityOf(agent.id)}</span>}
            </button>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="no-agent">No agent is called that.</p>}
    </>
  )
}

interface AgentSearchProps {
  readonly filter: string
  readonly first: AgentSummary | undefined
  readonly onInput: (filter: string) => void
  readonly onSelect: (id: string) => void
}

/** Enter goes to the first agent that is left. */
function AgentSearch({ filter, first, onInput, onSelect }: AgentSearchProps) {
  return (
    <input
      type="search"
      class="side-search"
      aria-label="Find an agent"
      placeholder="Find an agent"
      autocomplete="off"
      value={filter}
      onInput={(event) => onInput(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && filter !== '') {
          event.stopPropagation()
          onInput('')
        } else if (event.key === 'Enter' && first) onSelect(first.id)
      }}
    />
  )
}

/** A new agent is the last of a list that may be longer than what is seen of it. */
function useNewInView(list: RefObject<HTMLUListElement | null>, agents: readonly AgentSummary[]): void {
  const known = useRef<ReadonlySet<string>>(new Set())
  useEffect(() => {
    const isFirst = known.current.size === 0
    const added = agents.findLastIndex(({ id }) => !known.current.has(id))
    known.current = new Set(agents.map(({ id }) => id))
    if (!isFirst && added >= 0) list.current?.children[added]?.scrollIntoView({ block: 'nearest' })
  }, [agents])
}

/** The pages of plugins have a navigation of their own: the first of them shows it. */
function ManageLink({ client }: { readonly client: Client }) {
  const [first] = useValue(client.pages)
  if (!first) return null
  return (
    <a class="manage" href={first.url}>
      <SlidersIcon /> Manage
    </a>
  )
}

function SignedIn({ client }: { readonly client: Client }) {
  const credential = useValue(client.credential)
  const notRemembered = useValue(client.notRemembered)
  if (!credential) return null
  const { name, device } = credential
  return (
    <div class="signed-in">
      <FieldProblem problem={notRemembered} />
      <span title={name}>{name ?? (device === undefined ? 'Opened with the key' : 'A paired device')}</span>
      <button type="button" class="quiet" onClick={() => void client.signOut()}>
        Sign out
      </button>
    </div>
  )
}

export function Avatar({ name }: { readonly name: string }) {
  let hue = 0
  for (const character of name) hue = (hue * 31 + (character.codePointAt(0) ?? 0)) % 6
  return (
    <span class={`avatar hue-${hue}`} aria-hidden="true">
      {[...name.trim()][0]?.toUpperCase() ?? '?'}
    </span>
  )
}

/** Whether the model that comes with the daemon answers, because none is connected. */
export function isOffline(agent: AgentSummary): boolean {
  return agent.model_provider === 'builtin' && agent.model_name === 'offline'
}

export function modelLabel(agent: AgentSummary): string {
  if (isOffline(agent)) return 'offline model'
  return agent.model_name === 'default' ? 'default model' : agent.model_name
}
