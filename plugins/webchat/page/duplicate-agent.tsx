import { useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { FieldProblem } from './problem.tsx'
import type { AgentSummary } from './wire.ts'

interface DuplicateAgentProps {
  readonly client: Client
  readonly agent: AgentSummary
  readonly onClose: () => void
}

export function DuplicateAgent({ client, agent, onClose }: DuplicateAgentProps) {
  const [name, setName] = useState(`${agent.name}-copy`)
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)
  const submit = async (): Promise<void> => {
    if (working) return
    setWorking(true)
    try {
      await client.duplicate(agent.id, name.trim())
      onClose()
    } catch (error) {
      setProblem(explain(error))
      setWorking(false)
    }
  }
  return (
    <Dialog title={`Duplicate ${agent.name}`} onClose={onClose} onSubmit={() => void submit()}>
      <p>The copy has the same manifest, mode and identity, and a conversation of its own.</p>
      <label for="copy-name">Name</label>
      <input
        id="copy-name"
        value={name}
        required
        autocomplete="off"
        spellcheck={false}
        aria-invalid={problem !== undefined}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <FieldProblem problem={problem} />
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={working}>
          Duplicate
        </button>
      </div>
    </Dialog>
  )
}
