import { useEffect, useState } from 'preact/hooks'
import { explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { ModelFacts } from './model-facts.tsx'
import { FieldProblem } from './problem.tsx'
import type { Model, Provider } from './wire.ts'

interface ConnectModelProps {
  readonly client: Client
  readonly onClose: () => void
}

/** Connects a provider and chooses the default model: provider, key, test, model. */
export function ConnectModel({ client, onClose }: ConnectModelProps) {
  const [providers, setProviders] = useState<readonly Provider[]>([])
  const [provider, setProvider] = useState<Provider>()
  const [models, setModels] = useState<readonly Model[]>()
  const { problem, setProblem, working, attempt } = useWork()
  useEffect(() => {
    client.api.providers().then(
      (found) => {
        setProviders(found)
        setProvider(found[0])
      },
      (error: unknown) => setProblem(explain(error)),
    )
  }, [])

  const test = ({ key, address }: Access): Promise<void> =>
    attempt('Asking the provider …', async () => {
      if (!provider) return
      if (address !== '' && address !== provider.base_url) await client.api.setProviderAddress(provider.name, address)
      if (key !== '') await client.api.setProviderKey(provider.name, key)
      const { status, error } = await client.api.testProvider(provider.name)
      if (status === 'error') return setProblem(`${provider.display_name} does not answer: ${error ?? 'see the log'}`)
      setModels(await client.api.models(provider.name))
    })
  const use = (model: string): Promise<void> =>
    attempt('Saving …', async () => {
      if (!provider) return
      await client.useByDefault(provider.name, model)
      onClose()
    })

  if (provider && models)
    return (
      <ModelStep
        provider={provider}
        models={models}
        problem={problem}
        working={working}
        onUse={(model) => void use(model)}
        onClose={onClose}
      />
    )
  return (
    <KeyStep
      providers={providers}
      provider={provider}
      problem={problem}
      working={working}
      onProvider={setProvider}
      onTest={(access) => void test(access)}
      onClose={onClose}
    />
  )
}

/** What is being done, and why the last thing did not work. */
function useWork() {
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState<string>()
  const attempt = async (what: string, action: () => Promise<void>): Promise<void> => {
    if (working !== undefined) return
    setWorking(what)
    setProblem(undefined)
    try {
      await action()
    } catch (error) {
      setProblem(explain(error))
    } finally {
      setWorking(undefined)
    }
  }
  return { problem, setProblem, working, attempt }
}

/** What a provider is reached with; `''` leaves it as it is. */
interface Access {
  readonly key: string
  readonly address: string
}
interface KeyStepProps {
  readonly providers: readonly Provider[]
  readonly provider: Provider | undefined
  readonly problem: string | undefined
  readonly working: string | undefined
  readonly onProvider: (provider: Provider | undefined) => void
  readonly onTest: (access: Access) => void
  readonly onClose: () => void
}

interface KeyFieldProps {
  readonly provider: Provider
  readonly value: string
  readonly isWrong: boolean
  readonly onInput: (key: string) => void
}

function KeyField({ provider, value, isWrong, onInput }: KeyFieldProps) {
  const hasKey = provider.auth_status !== 'missing'
  return (
    <>
      <label for="provider-key">API key</label>
      <input
        id="provider-key"
        type="password"
        value={value}
        required={!hasKey}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={isWrong}
        aria-describedby="provider-key-hint"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <p id="provider-key-hint" class="hint">
        {hasKey ? 'It has a key. A new one takes its place. ' : ''}
        It goes to the vault of this daemon, encrypted, and is not shown again.
        {provider.env_var === undefined ? '' : ` The variable ${provider.env_var} would do the same.`}
      </p>
    </>
  )
}

function KeyStep({ providers, provider, problem, working, onProvider, onTest, onClose }: KeyStepProps) {
  const [key, setKey] = useState('')
  const [address, setAddress] = useState<string>()
  const isLocal = provider?.auth_status === 'no_key_needed' && provider.base_url !== undefined
  const isReady = provider !== undefined && provider.auth_status !== 'missing'
  return (
    <Dialog
      title="Connect a model"
      onClose={onClose}
      onSubmit={() => onTest({ key: key.trim(), address: address?.trim() ?? '' })}
    >
      <label for="provider">Provider</label>
      <select
        id="provider"
        value={provider?.name ?? ''}
        onChange={({ currentTarget: { value } }) => {
          onProvider(providers.find(({ name }) => name === value))
          setKey('')
          setAddress(undefined)
        }}
      >
        {providers.map(({ name, display_name: title, auth_status: status }) => (
          <option key={name} value={name}>
            {labelOf(title, status)}
          </option>
        ))}
      </select>
      <p class="hint">
        Ollama on this machine is found by itself and needs no key. For another server that speaks OpenAI's format, such
        as llama.cpp, choose vLLM and give its address.
      </p>
      {isLocal && <AddressField address={address ?? provider.base_url ?? ''} onInput={setAddress} />}
      {provider && provider.auth_status !== 'no_key_needed' && (
        <KeyField provider={provider} value={key} isWrong={problem !== undefined} onInput={setKey} />
      )}
      <FieldProblem problem={problem} />
      <StepActions submit={isReady ? 'Test' : 'Save and test'} working={working} onClose={onClose} />
    </Dialog>
  )
}

function AddressField({ address, onInput }: { readonly address: string; readonly onInput: (text: string) => void }) {
  return (
    <>
      <label for="provider-address">Address</label>
      <input
        id="provider-address"
        type="url"
        value={address}
        required
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget: { value } }) => onInput(value)}
      />
    </>
  )
}

function labelOf(title: string, status: string): string {
  if (status === 'missing') return title
  return `${title} (${status === 'no_key_needed' ? 'needs no key' : 'ready'})`
}

interface ModelStepProps {
  readonly provider: Provider
  readonly models: readonly Model[]
  readonly problem: string | undefined
  readonly working: string | undefined
  readonly onUse: (model: string) => void
  readonly onClose: () => void
}

function ModelStep({ provider, models, problem, working, onUse, onClose }: ModelStepProps) {
  const [id, setId] = useState(provider.default_model === '' ? (models[0]?.id ?? '') : provider.default_model)
  const model = models.find((one) => one.id === id.trim())
  return (
    <Dialog title={`${provider.display_name} answers`} onClose={onClose} onSubmit={() => onUse(id.trim())}>
      <label for="default-model">Model</label>
      <input
        id="default-model"
        value={id}
        required
        list="provider-models"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setId(event.currentTarget.value)}
      />
      <datalist id="provider-models">
        {models.map((one) => (
          <option key={one.id} value={one.id} />
        ))}
      </datalist>
      {model && <ModelFacts model={model} />}
      <p class="hint">It answers from now on for every agent that names no model of its own.</p>
      <FieldProblem problem={problem} />
      <StepActions submit="Use it" working={working} onClose={onClose} />
    </Dialog>
  )
}

interface StepActionsProps {
  readonly submit: string
  readonly working: string | undefined
  readonly onClose: () => void
}

function StepActions({ submit, working, onClose }: StepActionsProps) {
  return (
    <div class="dialog-actions">
      <button type="button" class="quiet" onClick={onClose}>
        Cancel
      </button>
      <button type="submit" class="primary" disabled={working !== undefined}>
        {working ?? submit}
      </button>
    </div>
  )
}
