import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { Avatar, isOffline, modelLabel } from './agents.tsx'
import { CheckIcon } from './icons.tsx'
import './welcome.css'
import type { AgentSummary } from './wire.ts'

const offlineIdeas = ['What can you do?', 'List your tools', 'use system_time {}']
const ideas = ['What can you do?', 'Which tools do you have?', 'What time is it?']

/** Reads how to begin with an agent. */
export const GuideReader = createContext<((agentId: string) => Promise<string>) | undefined>(undefined)

/** Messages that the template of an agent suggests: the list of its guide. */
function useGuide(agentId: string): readonly string[] {
  const read = useContext(GuideReader)
  const [found, setFound] = useState<readonly string[]>([])
  useEffect(() => {
    let isGone = false
    read?.(agentId).then(
      (guide) => {
        if (!isGone) setFound([...guide.matchAll(/^- (.+)$/gm)].map(([, idea = '']) => idea.trim()))
      },
      () => {
        // The usual ones are shown: an agent that is gone says so itself.
        if (!isGone) setFound([])
      },
    )
    return () => {
      isGone = true
    }
  }, [agentId, read])
  return found
}

interface WelcomeProps {
  readonly agent: AgentSummary
  /** How the CLI is called where the daemon runs. */
  readonly command: string
  readonly onSend: (text: string) => void
  readonly onConnect: () => void
}

/** What a newcomer sees before the first message: while no model is connected, three steps to the first answer. */
export function Welcome({ agent, command, onSend, onConnect }: WelcomeProps) {
  const offline = isOffline(agent)
  const [isFirstRun] = useState(offline)
  const own = useGuide(agent.id)
  // The offline model can do its own, and not all of the others.
  const shown = offline ? [...new Set([...offlineIdeas, ...own])] : own.length > 0 ? own : ideas
  return (
    <div class="welcome">
      <Avatar name={agent.name} />
      <h2>Say something to {agent.name}</h2>
      {isFirstRun ? (
        <ol class="steps">
          <li class={offline ? undefined : 'done'}>
            <ConnectStep agent={agent} command={command} onConnect={onConnect} />
          </li>
          <li>
            <h3>Ask something</h3>
            <Ideas ideas={shown} onSend={onSend} />
          </li>
          <li>
            <h3>Read the answer</h3>
            <p>It appears here. What {agent.name} may not do alone, it asks you first.</p>
          </li>
        </ol>
      ) : (
        <>
          <p>Write below, or start with one of these.</p>
          <Ideas ideas={shown} onSend={onSend} />
        </>
      )}
    </div>
  )
}

function ConnectStep({ agent, command, onConnect }: Omit<WelcomeProps, 'onSend'>) {
  if (!isOffline(agent))
    return (
      <h3>
        <CheckIcon /> {modelLabel(agent)} is connected
      </h3>
    )
  return (
    <>
      <h3>Connect a model</h3>
      <p>
        The offline model answers for now: it calls tools and answers simple things, but it cannot think. With the key
        of a provider, or Ollama on this machine, a real one answers.
      </p>
      <button type="button" class="primary" onClick={onConnect}>
        Connect a model
      </button>
      <p class="hint">
        In a terminal <code>{command} init</code> does the same.
      </p>
    </>
  )
}

function Ideas({
  ideas: list,
  onSend,
}: {
  readonly ideas: readonly string[]
  readonly onSend: (text: string) => void
}) {
  return (
    <ul class="ideas">
      {list.map((idea) => (
        <li key={idea}>
          <button type="button" onClick={() => onSend(idea)}>
            {idea}
          </button>
        </li>
      ))}
    </ul>
  )
}
