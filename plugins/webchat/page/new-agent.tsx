import { useEffect, useState } from 'preact/hooks'
import { ApiError, explain } from './api.ts'
import type { Client } from './client.ts'
import { Dialog } from './dialog.tsx'
import { manifestToml } from './manifest.ts'
import { useValue } from './observable.ts'
import { FieldProblem } from './problem.tsx'
import { SkillChoice } from './skill-choice.tsx'
import type { Skill, Template, TemplateNeeds } from './wire.ts'

interface NewAgentProps {
  readonly client: Client
  readonly taken: readonly string[]
  readonly onClose: () => void
}

export function NewAgent({ client, taken, onClose }: NewAgentProps) {
  const [name, setName] = useState('')
  const [template, setTemplate] = useState<Template>()
  const [systemPrompt, setSystemPrompt] = useState('')
  const [tools, setTools] = useState(true)
  const [needs, setNeeds] = useState<TemplateNeeds | string>()
  const [chosen, setChosen] = useState<readonly string[]>()
  const [problem, setProblem] = useState<string>()
  const [working, setWorking] = useState(false)

  const { templates, skills } = useOffered(client, setProblem)
  useNeeds(client, template?.name, setNeeds)

  const choose = (next: Template | undefined): void => {
    // A name that somebody typed stays.
    if (name === '' || name === template?.name) setName(next?.name ?? '')
    setTemplate(next)
    setChosen(undefined)
  }

  const submit = async (): Promise<void> => {
    if (working) return
    const invalid = checkName(name.trim(), taken)
    setProblem(invalid)
    if (invalid !== undefined) return
    setWorking(true)
    try {
      const described = template
        ? { template: template.name, name: name.trim() }
        : { manifest_toml: manifestToml({ name: name.trim(), systemPrompt, tools }) }
      await client.spawn(described, chosen)
      onClose()
    } catch (error) {
      setProblem(explain(error))
      setWorking(false)
    }
  }

  return (
    <Dialog title="New agent" onClose={onClose} onSubmit={() => void submit()}>
      {templates.length > 0 && <TemplateField templates={templates} value={template} onChoose={choose} />}
      {template !== undefined && <Needs needs={needs} />}
      <NameField value={name} isInvalid={problem !== undefined} onInput={setName} />
      {template === undefined && (
        <>
          <PromptField value={systemPrompt} onInput={setSystemPrompt} />
          <label class="check">
            <input type="checkbox" checked={tools} onChange={(event) => setTools(event.currentTarget.checked)} /> It may
            use all tools of the daemon
          </label>
          <FormLink client={client} />
        </>
      )}
      {skills.length > 0 && (
        <SkillChoice skills={skills} chosen={chosen} usual={skillsOf(needs)} onChoose={setChosen} />
      )}
      <FieldProblem id="agent-problem" problem={problem} />
      <Buttons working={working} onClose={onClose} />
    </Dialog>
  )
}

/** Where all of a manifest can be chosen. */
function FormLink({ client }: Pick<NewAgentProps, 'client'>) {
  const url = useValue(client.pages).find(({ plugin }) => plugin === 'agents')?.url
  if (url === undefined) return null
  return (
    <p class="hint">
      <a href={`${url}#new`}>Choose its model and its tools</a> on the page Agents.
    </p>
  )
}

function Buttons({ working, onClose }: { readonly working: boolean; readonly onClose: () => void }) {
  return (
    <div class="dialog-actions">
      <button type="button" class="quiet" onClick={onClose}>
        Cancel
      </button>
      <button type="submit" class="primary" disabled={working}>
        {working ? 'Making …' : 'Make the agent'}
      </button>
    </div>
  )
}

/** The templates and skills there are. */
function useOffered(client: Client, onProblem: (problem: string) => void) {
  const [templates, setTemplates] = useState<readonly Template[]>([])
  const [skills, setSkills] = useState<readonly Skill[]>([])
  useEffect(() => {
    // The daemon may run without one of the plugins: an agent is described here then, or has no skills.
    const failed = (error: unknown): void => {
      if (!(error instanceof ApiError && error.status === 404)) onProblem(explain(error))
    }
    client.api.templates().then(setTemplates, failed)
    client.api.skills().then(setSkills, failed)
  }, [client])
  return { templates, skills }
}

function checkName(name: string, taken: readonly string[]): string | undefined {
  if (name === '') return 'Give the agent a name.'
  return taken.includes(name) ? `An agent named ${name} exists already. Choose another name.` : undefined
}

interface TemplateFieldProps {
  readonly templates: readonly Template[]
  readonly value: Template | undefined
  readonly onChoose: (template: Template | undefined) => void
}

function TemplateField({ templates, value, onChoose }: TemplateFieldProps) {
  return (
    <>
      <label for="agent-template">
        Template <span class="optional">optional</span>
      </label>
      <select
        id="agent-template"
        value={value?.name ?? ''}
        aria-describedby="agent-template-hint"
        onChange={(event) => onChoose(templates.find(({ name }) => name === event.currentTarget.value))}
      >
        <option value="">None: describe it yourself</option>
        {templates.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <p id="agent-template-hint" class="hint">
        {value?.description ?? 'Instructions, tools and skills for a kind of work.'}
      </p>
    </>
  )
}

const skillsOf = (needs: TemplateNeeds | string | undefined): readonly string[] =>
  typeof needs === 'object' ? needs.skills : []

/** What a template needs, or why that cannot be shown; nothing while it is loaded, and without one. */
function useNeeds(
  client: Client,
  name: string | undefined,
  set: (needs: TemplateNeeds | string | undefined) => void,
): void {
  useEffect(() => {
    let isGone = false
    set(undefined)
    if (name === undefined) return
    client.api.template(name).then(
      (found) => {
        if (!isGone) set(found)
      },
      (error: unknown) => {
        if (!isGone) set(explain(error))
      },
    )
    return () => {
      isGone = true
    }
  }, [client, name])
}

/** What an agent of a template may do, before there is one. */
function Needs({ needs }: { readonly needs: TemplateNeeds | string | undefined }) {
  if (needs === undefined) return null
  if (typeof needs === 'string') return <p class="hint">What it needs cannot be shown: {needs}</p>
  const { tools, network, shell } = needs.manifest.capabilities
  const list = (names: readonly string[], none: string): string => (names.length === 0 ? none : names.join(', '))
  const [guide = ''] = needs.guide.split('\n', 1)
  return (
    <dl class="needs" aria-label="What it needs">
      <dt>Model</dt>
      <dd>{needs.tier === '' ? 'any' : `${needs.tier} or better`}</dd>
      <dt>Tools</dt>
      <dd>{list(tools, 'none')}</dd>
      <dt>Skills</dt>
      <dd>{list(needs.skills, 'all')}</dd>
      <dt>Network</dt>
      <dd>{list(network, 'none')}</dd>
      <dt>Programs</dt>
      <dd>{list(shell, 'none')}</dd>
      {guide !== '' && (
        <>
          <dt>To begin</dt>
          <dd>{guide}</dd>
        </>
      )}
    </dl>
  )
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
