import { useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { manifestToml } from './manifest.ts'
import { FieldProblem } from './problem.tsx'

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
    const invalid = checkName(name.trim(), taken)
    setProblem(invalid)
    if (invalid !== undefined) return
    setWorking(true)
    try {
      await client.spawn(manifestToml({ name: name.trim(), systemPrompt, tools }))
      onClose()
    } catch (error) {
      setProblem(explain(error))
      setWorking(false)
    }
  }

  return (
    <Dialog title="New agent" onClose={onClose} onSubmit={() => void submit()}>
      <NameField value={name} isInvalid={problem !== undefined} onInput={setName} />
      <PromptField value={systemPrompt} onInput={setSystemPrompt} />
      <label class="check">
        <input type="checkbox" checked={tools} onChange={(event) => setTools(event.currentTarget.checked)} /> It may use
        all tools of the daemon
      </label>
      <FieldProblem id="agent-problem" problem={problem} />
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

function checkName(name: string, taken: readonly string[]): string | undefined {
  if (name === '') return 'Give the agent a name.'
  return taken.includes(name) ? `An agent named ${name} exists already. Choose another name.` : undefined
}

interface NameFieldProps {
  readonly value: string
  readonly isInvalid: boolean
  readonly onInput: (name: string) => void
}

function NameField({ value, isInvalid, onInput }: NameFieldProps) {
  return (
    <>
      <label for="agent-name">Name</label>
      <input
        id="agent-name"
        value={value}
        required
        maxLength={256}
        autocomplete="off"
        placeholder="researcher"
        aria-invalid={isInvalid}
        aria-describedby={isInvalid ? 'agent-problem' : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </>
  )
}

function PromptField({ value, onInput }: { readonly value: string; readonly onInput: (prompt: string) => void }) {
  return (
    <>
      <label for="agent-prompt">
        Instructions <span class="optional">optional</span>
      </label>
      <textarea
        id="agent-prompt"
        rows={5}
        value={value}
        maxLength={65_536}
        aria-describedby="agent-prompt-hint"
        placeholder="You are a careful researcher. Say where each fact comes from."
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <p id="agent-prompt-hint" class="hint">
        What it is for and how it should behave. It reads this before every answer.
      </p>
    </>
  )
}
