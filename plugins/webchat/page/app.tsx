import { useEffect, useRef, useState } from 'preact/hooks'
import { Agents } from './agents.tsx'
import type { Client } from './client.ts'
import { Conversation } from './conversation.tsx'
import { Mark } from './icons.tsx'
import { KeyPrompt } from './key.tsx'
import { NewAgent } from './new-agent.tsx'
import { useValue } from './observable.ts'

export function App({ client }: { readonly client: Client }) {
  const gate = useValue(client.gate)
  switch (gate.state) {
    case 'checking':
      return (
        <main class="gate">
          <p class="gate-wait" role="status">
            <Mark /> Asking the daemon …
          </p>
        </main>
      )
    case 'key':
      return (
        <KeyPrompt
          problem={gate.problem}
          providers={gate.providers}
          onKey={(key, keep) => void client.enter(key, keep)}
        />
      )
    case 'unreachable':
      return (
        <Unreachable
          problem={gate.problem}
          command={client.status.value?.command ?? 'svc'}
          onRetry={() => void client.start()}
        />
      )
    case 'ready':
      return <Workspace client={client} />
  }
}

function Unreachable({
  problem,
  command,
  onRetry,
}: {
  readonly problem: string
  readonly command: string
  readonly onRetry: () => void
}) {
  return (
    <main class="gate">
      <div class="card" role="alert">
        <h1>
          <Mark /> No answer yet
        </h1>
        <p>{problem}</p>
        <p class="hint">
          Start it with <code>{command} start</code>, or look at <code>{command} doctor</code> when it should be
          running.
        </p>
        <button type="button" class="primary" onClick={onRetry}>
          Try again
        </button>
      </div>
    </main>
  )
}

function Workspace({ client }: { readonly client: Client }) {
  const agents = useValue(client.agents)
  const chat = useValue(client.selected)
  const [menuOpen, setMenuOpen] = useState(false)
  const [adding, setAdding] = useState(false)
  const menuButton = useRef<HTMLButtonElement>(null)
  const agent = agents.find(({ id }) => id === chat?.agentId)

  const waiting = useValue(client.approvals.pending).length
  useEffect(() => {
    const name = agent ? `${agent.name} · svc` : 'svc'
    document.title =
      waiting === 0 ? name : `(${waiting}) ${waiting === 1 ? 'An approval waits' : 'Approvals wait'} · ${name}`
  }, [agent?.name, waiting])

  const menuWasOpen = useRef(false)
  useEffect(() => {
    if (menuWasOpen.current && !menuOpen && !adding) menuButton.current?.focus()
    menuWasOpen.current = menuOpen
  }, [menuOpen])
  useEffect(() => {
    // The list stands beside the conversation again.
    const wide = matchMedia('(min-width: 761px)')
    const close = (): void => setMenuOpen(false)
    wide.addEventListener('change', close)
    return () => wide.removeEventListener('change', close)
  }, [])
  const closeMenu = (): void => setMenuOpen(false)
  const add = (): void => {
    setMenuOpen(false)
    setAdding(true)
  }

  return (
    <div class="desk">
      <a
        class="skip"
        href="#message-box"
        onClick={(event) => {
          // The fragment holds the agent; following the link would replace it.
          event.preventDefault()
          document.getElementById('message-box')?.focus()
        }}
      >
        Skip to the message box
      </a>
      <Agents
        client={client}
        agents={agents}
        selectedId={chat?.agentId}
        open={menuOpen}
        onClose={closeMenu}
        onAdd={add}
        onSelect={(id) => {
          client.select(id)
          closeMenu()
        }}
      />
      {chat && agent ? (
        <Conversation
          key={agent.id}
          client={client}
          chat={chat}
          agent={agent}
          menuOpen={menuOpen}
          menuButton={menuButton}
          onMenu={() => setMenuOpen(!menuOpen)}
        />
      ) : (
        <NoAgents onAdd={add} />
      )}
      {adding && <NewAgent client={client} taken={agents.map(({ name }) => name)} onClose={() => setAdding(false)} />}
    </div>
  )
}

function NoAgents({ onAdd }: { readonly onAdd: () => void }) {
  return (
    <main class="gate">
      <div class="card">
        <h1>
          <Mark /> No agents
        </h1>
        <p>An agent is a name, a model and a few instructions. Make one to have someone to talk to.</p>
        <button type="button" class="primary" onClick={onAdd}>
          New agent
        </button>
      </div>
    </main>
  )
}
