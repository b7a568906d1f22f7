import { useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { WarningIcon } from './icons.tsx'
import type { AgentSummary } from './wire.ts'

export function RemoveAgent({
  client,
  agent,
  onClose,
}: {
  readonly client: Client
  readonly agent: AgentSummary
  readonly onClose: () => void
}) {
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)
  const submit = async (): Promise<void> => {
    if (working) return
    setWorking(true)
    try {
      await client.kill(agent.id)
      onClose()
    } catch (error) {
      setProblem(explain(error))
      setWorking(false)
    }
  }
  return (
    <Dialog title={`Delete ${agent.name}?`} onClose={onClose} onSubmit={() => void submit()}>
      <p>The agent stops at once and its conversation can no longer be opened. This cannot be undone.</p>
      {problem !== undefined && (
        <p class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      )}
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={onClose}>
          Keep it
        </button>
        <button type="submit" class="danger" disabled={working}>
          {working ? 'Deleting …' : `Delete ${agent.name}`}
        </button>
      </div>
    </Dialog>
  )
}
