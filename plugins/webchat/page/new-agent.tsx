import { useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { WarningIcon } from './icons.tsx'
import { manifestToml } from './manifest.ts'

interface NewAgentProps {
  readonly client: Client
  readonly taken: readonly string[]
  readonly onClose: () => void
}

export function NewAgent({ client, taken, onClose }: NewAgentProps) {
  const [name, setName] = useState('')
  const [systemPrompt, setSystemPrompt] = useState('')
  const [tools, setTools] = useState(true)
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)

  const submit = async (): Promise<void> => {
    if (working) return
    const wanted = name.trim()
    if (wanted === '') return setProblem('Give the agent a name.')
    if (taken.includes(wanted)) return setProblem(`There is an agent named ${wanted} already. Choose another name.`)
    setWorking(true)
    setProblem(undefined)
    try {
      await client.spawn(manifestToml({ name: wanted, systemPrompt, tools }))
      onClose()
    } catch (error) {
      setProblem(explain(error))
      setWorking(false)
    }
  }

  return (
    <Dialog title="New agent" onClose={onClose} onSubmit={() => void submit()}>
      <label for="agent-name">Name</label>
      <input
        id="agent-name"
        value={name}
        required
        maxLength={256}
        autocomplete="off"
        placeholder="researcher"
        aria-invalid={problem !== undefined}
        aria-describedby={problem === undefined ? undefined : 'agent-problem'}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <label for="agent-prompt">
        Instructions <span class="optional">optional</span>
      </label>
      <textarea
        id="agent-prompt"
        rows={5}
        value={systemPrompt}
        maxLength={65_536}
        aria-describedby="agent-prompt-hint"
        placeholder="You are a careful researcher. Say where each fact comes from."
        onInput={(event) => setSystemPrompt(event.currentTarget.value)}
      />
      <p id="agent-prompt-hint" class="hint">
        What it is for and how it should behave. It reads this before every answer.
      </p>
      <label class="check">
        <input type="checkbox" checked={tools} onChange={(event) => setTools(event.currentTarget.checked)} /> It may use
        all tools of the daemon
      </label>
      {problem !== undefined && (
        <p id="agent-problem" class="field-problem" role="alert">
          <WarningIcon /> {problem}
        </p>
      )}
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={working}>
          {working ? 'Making …' : 'Make the agent'}
        </button>
      </div>
    </Dialog>
  )
}
