import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { ModelFacts } from './model-facts.tsx'
import './model-picker.css'
import { useValue } from './observable.ts'
import { FieldProblem } from './problem.tsx'
import type { AgentSummary, Model } from './wire.ts'

const MAX_SHOWN = 100

interface ModelPickerProps {
  readonly client: Client
  readonly agent: AgentSummary
  readonly onConnect: () => void
  readonly onClose: () => void
}

/** Which model answers for an agent, of those that can be used now. */
export function ModelPicker({ client, agent, onConnect, onClose }: ModelPickerProps) {
  const status = useValue(client.status)
  const [search, setSearch] = useState('')
  const { models, problem, working, choose } = useModels(client, agent, onClose)
  const isCurrent = ({ id, provider }: Model): boolean => id === agent.model_name && provider === agent.model_provider
  const found = matching(models ?? [], search).toSorted((a, b) => Number(isCurrent(b)) - Number(isCurrent(a)))
  const [first] = found
  return (
    <Dialog
      title={`Model of ${agent.name}`}
      onClose={onClose}
      onSubmit={() => {
        if (first && search !== '' && !working) void choose(first.provider, first.id)
      }}
    >
      <label for="model-search">Search models</label>
      <input
        id="model-search"
        type="search"
        autocomplete="off"
        spellcheck={false}
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      <FieldProblem problem={problem} />
      <ul class="models" aria-label="Models" aria-busy={models === undefined}>
        {search === '' && status && (
          <Row disabled={working} title="The default model" onChoose={() => void choose('default', 'default')}>
            <span class="model-facts">
              now {status.default_provider}/{status.default_model}
            </span>
          </Row>
        )}
        {found.slice(0, MAX_SHOWN).map((model) => (
          <Row
            key={`${model.provider}/${model.id}`}
            title={`${model.provider}/${model.id}`}
            disabled={working}
            isCurrent={isCurrent(model)}
            onChoose={() => void choose(model.provider, model.id)}
          >
            <ModelFacts model={model} />
          </Row>
        ))}
      </ul>
      {models && found.length === 0 && <p class="hint">No model that can be used now is called that.</p>}
      {found.length > MAX_SHOWN && <p class="hint">{found.length - MAX_SHOWN} more. Search for one.</p>}
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={onConnect}>
          Connect a provider …
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}

function useModels(client: Client, agent: AgentSummary, onChosen: () => void) {
  const [models, setModels] = useState<readonly Model[]>()
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)
  useEffect(() => {
    client.api.models().then(setModels, (error: unknown) => setProblem(explain(error)))
  }, [])
  const choose = async (provider: string, model: string): Promise<void> => {
    setWorking(true)
    setProblem(undefined)
    try {
      await client.setModel(agent.id, provider, model)
      onChosen()
    } catch (error) {
      setProblem(explain(error))
      setWorking(false)
    }
  }
  return { models, problem, working, choose }
}

interface RowProps {
  readonly title: string
  readonly disabled: boolean
  readonly isCurrent?: boolean
  readonly onChoose: () => void
  readonly children: ComponentChildren
}

function Row({ title, disabled, isCurrent = false, onChoose, children }: RowProps) {
  return (
    <li>
      <button type="button" disabled={disabled} aria-current={isCurrent ? 'true' : undefined} onClick={onChoose}>
        <strong>{title}</strong>
        {children}
      </button>
    </li>
  )
}

function matching(models: readonly Model[], search: string): readonly Model[] {
  const words = search.toLowerCase().split(/\s+/)
  return models.filter(({ id, provider, display_name: title }) => {
    const text = `${provider}/${id} ${title}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}
