import { call, element, openDialog } from '../../kit/kit.js'

/** What can happen: its pattern, how it reads, and the field that narrows it. */
const PATTERNS = [
  ['agent_spawned', 'An agent is made', 'name_pattern'],
  ['agent_terminated', 'An agent ends'],
  ['lifecycle', 'An agent is made, changes or ends'],
  ['task_posted', 'A task is posted', 'assignee_match'],
  ['task_claimed', 'A task is claimed', 'creator_match'],
  ['memory_update', 'A memory is written'],
  ['memory_key_pattern', 'A memory with a certain key is written', 'key_pattern'],
  ['content_match', 'A text contains certain words', 'substring'],
  ['system', 'The daemon says something'],
  ['system_keyword', 'The daemon says a certain word', 'keyword'],
  ['all', 'Anything'],
]

/** Asks what an agent is to be asked and upon what; `finish` is told what was made. */
export function askForTrigger(agents, finish) {
  const agent = choice(agents.map(({ id, name }) => [id, name]))
  const pattern = choice(PATTERNS)
  const match = element('input', { autocomplete: 'off', spellcheck: 'false', placeholder: 'scout-*' })
  const prompt = element('textarea', { rows: '3', placeholder: 'Look at this: {{event}}' })
  const fieldOf = () => PATTERNS.find(([name]) => name === pattern.value)?.[2]
  const narrowed = field('Only', match, 'A name, or a part of one with * for the rest. Empty: each of them.')
  const update = () => {
    narrowed.hidden = fieldOf() === undefined
  }
  pattern.addEventListener('change', update)
  update()
  openDialog({
    title: 'New trigger',
    content: [
      field('When', pattern),
      narrowed,
      field('Agent', agent),
      field('What it is asked', prompt, 'Written {{event}}, what happened is put there. Empty: the usual question.'),
    ],
    confirm: 'Create',
    async submit() {
      const narrow = fieldOf() && match.value.trim() !== '' ? { [fieldOf()]: match.value.trim() } : {}
      await call('POST', '/api/triggers', {
        agent_id: agent.value,
        pattern: { [pattern.value]: narrow },
        ...(prompt.value.trim() !== '' && { prompt_template: prompt.value }),
      })
      await finish(`${pattern.selectedOptions[0].textContent}: from now on the agent is asked.`)
    },
  })
}

const choice = (options) =>
  element(
    'select',
    {},
    options.map(([value, text]) => element('option', { value }, text)),
  )
const field = (label, input, hint) =>
  element('label', { className: 'field' }, label, input, hint && element('span', { className: 'hint' }, hint))
