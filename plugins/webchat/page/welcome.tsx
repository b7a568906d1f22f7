import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { Avatar, isOffline } from './agents.tsx'
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

/** What a newcomer sees before the first message. */
export function Welcome({
  agent,
  command,
  onSend,
}: {
  readonly agent: AgentSummary
  /** How the CLI is called where the daemon runs. */
  readonly command: string
  readonly onSend: (text: string) => void
}) {
  const offline = isOffline(agent)
  const own = useGuide(agent.id)
  // The offline model can do its own, and not all of the others.
  const shown = offline ? [...new Set([...offlineIdeas, ...own])] : own.length > 0 ? own : ideas
  return (
    <div class="welcome">
      <Avatar name={agent.name} />
      <h2>Say something to {agent.name}</h2>
      <p>Write below, or start with one of these.</p>
      <ul class="ideas">
        {shown.map((idea) => (
          <li key={idea}>
            <button type="button" onClick={() => onSend(idea)}>
              {idea}
            </button>
          </li>
        ))}
      </ul>
      {offline && (
        <section class="note" aria-labelledby="offline-title">
          <h3 id="offline-title">The offline model answers for now</h3>
          <p>
            No model provider is connected yet, so the small model that comes with svc is in its place. It calls tools
            and answers simple things, but it cannot think.
          </p>
          <p>To connect a real one, do one of these:</p>
          <ul>
            <li>
              store a provider's key: <code>{command} providers set-key openai</code>
            </li>
            <li>
              or set it, <code>export OPENAI_API_KEY=…</code>, and restart the daemon
            </li>
            <li>
              or run{' '}
              <a href="https://ollama.com" target="_blank" rel="noopener noreferrer">
                Ollama
              </a>{' '}
              on this machine, which needs no key, and restart the daemon
            </li>
          </ul>
        </section>
      )}
    </div>
  )
}
