import { useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { PendingApprovals } from './approvals.ts'
import { WarningIcon } from './icons.tsx'
import { useValue } from './observable.ts'

/** The standing approvals of the agent in view, and a way to revoke them. */
export function GrantList({
  approvals,
  agentId,
  sessionId,
}: {
  readonly approvals: PendingApprovals
  readonly agentId: string
  readonly sessionId: string | undefined
}) {
  const grants = useValue(approvals.grants).filter((grant) => grant.agent_id === agentId)
  const [working, setWorking] = useState<string>()
  const [problem, setProblem] = useState<string>()
  if (grants.length === 0) return null
  const revoke = async (id: string): Promise<void> => {
    setWorking(id)
    setProblem(undefined)
    try {
      await approvals.revoke(id)
    } catch (error) {
      setProblem(explain(error))
    } finally {
      setWorking(undefined)
    }
  }
  return (
    <details class="grants">
      <summary>{grants.length === 1 ? '1 standing approval' : `${grants.length} standing approvals`}</summary>
      <ul aria-label="Standing approvals">
        {grants.map(({ id, tool_name: tool, covers, uses, session_id: session }) => (
          <li key={id}>
            <span>
              <code>{tool}</code>: {covers}, until {session === sessionId ? 'this' : 'another'} conversation ends.
              {uses > 0 && ` Used ${uses === 1 ? 'once' : `${uses} times`}.`}
            </span>
            <button type="button" disabled={working !== undefined} onClick={() => void revoke(id)}>
              Revoke<span class="hidden"> the approval of {tool}</span>
            </button>
          </li>
        ))}
      </ul>
      {problem !== undefined && (
        <p class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      )}
    </details>
  )
}
