import { useEffect, useRef, useState } from 'preact/hooks'
import { Agents } from './agents.tsx'
import { CanvasReader } from './canvas.tsx'
import { FileReader } from './sent-image.tsx'
import { MemoryReader } from './memories.tsx'
import type { Client } from './client.ts'
import { Conversation } from './conversation.tsx'
import { Mark } from './icons.tsx'
import { KeyPrompt } from './key.tsx'
import { NewAgent } from './new-agent.tsx'
import { useValue } from './observable.ts'
import { OwnerKey } from './owner-key.tsx'
import { GuideReader } from './welcome.tsx'

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
          canPair={gate.canPair}
          onKey={(key, isRemembered) => void client.enter(key, isRemembered)}
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
  const [adding, setAdding] = useState(false)
  const menu = useMenu(adding)
  const agent = agents.find(({ id }) => id === chat?.agentId)
  useTitle(agent?.name, useValue(client.approvals.pending).length)
  const memoryUses = useValue(client.memoryUses)
  const ownerKey = useValue(client.ownerKeyRequest)
  const add = (): void => {
    menu.close()
    setAdding(true)
  }

  return (
    <div class="desk">
      <SkipLink />
      <Agents
        client={client}
        agents={agents}
        selectedId={chat?.agentId}
        open={menu.open}
        onClose={menu.close}
        onAdd={add}
        onSelect={(id) => {
          client.select(id)
          menu.close()
        }}
      />
      {chat && agent ? (
        <CanvasReader.Provider value={client.readCanvas}>
          <GuideReader.Provider value={client.readGuide}>
            <MemoryReader.Provider value={memoryUses}>
              <FileReader.Provider value={client.readFile}>
                <Conversation
                  key={agent.id}
                  client={client}
                  chat={chat}
                  agent={agent}
                  menuOpen={menu.open}
                  menuButton={menu.button}
                  onMenu={menu.toggle}
                />
              </FileReader.Provider>
            </MemoryReader.Provider>
          </GuideReader.Provider>
        </CanvasReader.Provider>
      ) : (
        <NoAgents onAdd={add} />
      )}
      {ownerKey && <OwnerKey request={ownerKey} />}
      {adding && <NewAgent client={client} taken={agents.map(({ name }) => name)} onClose={() => setAdding(false)} />}
    </div>
  )
}

/** The drawer with the agents on a narrow screen. The button that opens it gets the focus back. */
function useMenu(adding: boolean) {
  const [open, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const wasOpen = useRef(false)
  useEffect(() => {
    if (wasOpen.current && !open && !adding) button.current?.focus()
    wasOpen.current = open
  }, [open])
  const close = (): void => setOpen(false)
  useEffect(() => {
    // On a wide screen the list is beside the conversation.
    const wide = matchMedia('(min-width: 761px)')
    wide.addEventListener('change', close)
    return () => wide.removeEventListener('change', close)
  }, [])
  return { open, button, close, toggle: () => setOpen(!open) }
}

function useTitle(agentName: string | undefined, pendingApprovals: number): void {
  useEffect(() => {
    const name = agentName === undefined ? 'svc' : `${agentName} · svc`
    const approvals = pendingApprovals === 1 ? 'An approval waits' : 'Approvals wait'
    document.title = pendingApprovals === 0 ? name : `(${pendingApprovals}) ${approvals} · ${name}`
  }, [agentName, pendingApprovals])
}

function SkipLink() {
  return (
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
