import { byId, call, element, facts, livePage, openDialog, replace, show } from '../../kit/kit.js'

const POLL_MS = 10_000

const refresh = livePage({
  content: [byId('instances'), byId('hands')],
  submit: 'Show the hands',
  load,
  words: ['hand'],
  everyMs: POLL_MS,
})

async function load() {
  const [{ hands, problems }, { instances }] = await Promise.all([
    call('GET', '/api/hands'),
    call('GET', '/api/hands/active'),
  ])
  const stats = await Promise.all(
    instances.map(({ instance_id: id }) => call('GET', `/api/hands/instances/${encodeURIComponent(id)}/stats`)),
  )
  replace(
    byId('instances'),
    instances.map((instance, at) => instanceCard(instance, stats[at].metrics, hands)),
  )
  replace(byId('hands'), [...problems.map(problemCard), ...hands.map(handCard)])
}

const FORMATS = {
  percentage: (value) => `${value} %`,
  duration: (value) => `${value} s`,
  bytes: (value) => `${Number(value).toLocaleString()} bytes`,
  number: (value) => Number(value).toLocaleString(),
}
function figure({ value, format }) {
  if (value === null) return 'none yet'
  return FORMATS[format]?.(value) ?? String(value)
}
const cardOf = (instanceId) => `instance-${instanceId}`
const localTime = (time) => (time === null ? '' : new Date(time).toLocaleString())

function instanceCard(instance, metrics, hands) {
  const { instance_id: id, hand_id: hand, instance_name: name, status, agents, lacks, schedule_id } = instance
  const title = `${hands.find((one) => one.id === hand)?.name ?? hand} · ${name}`
  const isPaused = status === 'Paused'
  const kind = status === 'Active' ? 'badge good' : isPaused ? 'badge' : 'badge bad'
  const path = `/api/hands/instances/${encodeURIComponent(id)}`
  const act = (text, done, send) => button(text, title, () => attempt(send, `${title} ${done}.`))
  return element(
    'section',
    { className: 'card', 'aria-label': title, id: cardOf(id) },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, title),
      element('span', { className: kind }, status.split(':', 1)[0]),
    ),
    status.startsWith('Error') && element('p', { className: 'quote' }, status),
    lacks.length > 0 && element('p', { className: 'quote' }, `It lacks ${lacks.join('; ')}.`),
    element(
      'dl',
      {},
      ...facts([
        ...Object.entries(metrics).map(([label, value]) => [label, figure(value)]),
        ['hand', hand],
        [agents.length > 1 ? 'agents' : 'agent', agents.map((one) => one.agent_name).join(', ')],
        ['next run', localTime(instance.next_run)],
        ['last run', localTime(instance.last_run)],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      !isPaused &&
        act('Run now', 'was woken', () => call('POST', `/api/schedules/${encodeURIComponent(schedule_id)}/run`)),
      status === 'Active'
        ? act('Pause', 'is paused', () => call('POST', `${path}/pause`))
        : act('Resume', 'goes on', () => call('POST', `${path}/resume`)),
      hands.some((one) => one.id === hand && one.has_settings) &&
        button('Settings', title, () => openSettings(hand, id, title)),
      button('Deactivate', title, () => askToRemove(path, title, agents)),
    ),
  )
}

function problemCard({ name, path, error }) {
  return element(
    'section',
    { className: 'card', 'aria-label': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: 'badge bad' }, 'not usable'),
    ),
    element('p', { className: 'quote' }, error),
    element('dl', {}, ...facts([['folder', path]])),
  )
}

function handCard({ id, name, description, category, requirements, requirements_met: isReady, icon }) {
  const missing = requirements.filter(({ satisfied }) => !satisfied).map(({ label }) => label)
  return element(
    'section',
    { className: 'card', 'aria-label': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, `${icon} ${name}`.trim()),
      element('span', { className: 'badge' }, category),
      !isReady && element('span', { className: 'badge warn' }, 'lacks something'),
    ),
    element('p', { className: 'quote' }, description),
    element(
      'dl',
      {},
      ...facts([
        ['id', id],
        ['not there', missing.join('; ')],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      isReady && button('Activate', name, () => askToActivate(id, name)),
      button('Show', name, () => openDetail(id)),
    ),
  )
}

async function openDetail(id) {
  const hand = await call('GET', `/api/hands/${encodeURIComponent(id)}`)
  openDialog({
    title: hand.name,
    content: [
      element(
        'dl',
        {},
        ...facts([
          ['tools', hand.tools.join(', ')],
          ['skills', hand.skills.join(', ')],
          ['network', hand.capabilities.network.join(', ') || 'none'],
          ['programs', hand.capabilities.shell.join(', ') || 'none'],
          ...hand.requirements.map(({ label, satisfied }) => [satisfied ? 'there' : 'not there', label]),
        ]),
      ),
      element('pre', {}, hand.agent.system_prompt),
    ],
  })
}

/** A field for each setting; `read` takes their values. */
function settingFields(settings, values) {
  const fields = settings.map(
    ({ key, label, description, required, setting_type: type, options, secret: isSecret }) => {
      const value = values[key]
      const text = [
        label,
        required && element('span', { className: 'hint' }, ' (needed: without it a run does nothing)'),
        description !== '' && element('span', { className: 'hint' }, ` ${description}`),
      ]
      if (type === 'toggle') {
        const input = element('input', { type: 'checkbox', checked: value === true })
        return { key, read: () => input.checked, shown: element('label', { className: 'check' }, input, text) }
      }
      const input =
        type === 'select'
          ? element(
              'select',
              {},
              options.map((option) =>
                element(
                  'option',
                  { value: option.value, selected: option.value === value },
                  option.available ? option.label : `${option.label} (not available)`,
                ),
              ),
            )
          : element('input', {
              maxlength: '4096',
              value: value ?? '',
              ...(isSecret && { type: 'password', autocomplete: 'off' }),
            })
      return { key, read: () => input.value, shown: element('label', { className: 'field' }, text, input) }
    },
  )
  return {
    content: fields.map(({ shown }) => shown),
    read: () => Object.fromEntries(fields.map(({ key, read }) => [key, read()])),
  }
}

async function askToActivate(id, title) {
  const path = `/api/hands/${encodeURIComponent(id)}`
  const { settings, metadata } = await call('GET', path)
  const defaults = Object.fromEntries(
    settings.map(({ key, default: value, setting_type: type }) => [
      key,
      type === 'toggle' ? String(value) === 'true' : value,
    ]),
  )
  const fields = settingFields(settings, defaults)
  const name = element('input', { maxlength: '48', value: 'default' })
  openDialog({
    title: `Activate “${title}”?`,
    content: [
      metadata.activation_warning && element('p', { className: 'hint' }, metadata.activation_warning),
      element('label', { className: 'field' }, 'Name of the instance', name),
      ...fields.content,
    ],
    confirm: 'Activate',
    async submit() {
      const made = await call('POST', `${path}/activate`, { config: fields.read(), instance_name: name.value })
      const lacks = made.lacks.length === 0 ? '' : ` It lacks ${made.lacks.join('; ')}.`
      await finish(`“${title}” is active as agent ${made.agent_name}.${lacks}`)
      // The button that was clicked may be far below it.
      document.getElementById(cardOf(made.instance_id))?.scrollIntoView({ block: 'center' })
    },
  })
}

async function openSettings(hand, id, title) {
  const path = `/api/hands/${encodeURIComponent(hand)}/settings?instance=${encodeURIComponent(id)}`
  const { settings, current_values: values } = await call('GET', path)
  const fields = settingFields(settings, values)
  openDialog({
    title: `Settings of ${title}`,
    content: fields.content,
    confirm: 'Save',
    async submit() {
      await call('PUT', path, fields.read())
      await finish(`The settings of ${title} hold from its next run.`)
    },
  })
}

function askToRemove(path, title, agents) {
  const names = agents.map((one) => one.agent_name).join(', ')
  openDialog({
    title: `Deactivate ${title}?`,
    content: element(
      'p',
      {},
      agents.length > 1
        ? `The agents ${names} are removed with their conversations and files.`
        : `The agent ${names} is removed with its conversations and files.`,
    ),
    confirm: 'Deactivate',
    isDangerous: true,
    async submit() {
      await call('DELETE', path)
      await finish(`${title} is deactivated.`)
    },
  })
}

function button(text, name, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${text} ${name}`, 'aria-label': `${text}: ${name}`, onclick },
    text,
  )
}
async function attempt(send, text) {
  try {
    await send()
    await finish(text)
  } catch (error) {
    show('problem', error.message)
  }
}
/** Says what was done, and shows what it changed. */
async function finish(text) {
  await refresh()
  show('notice', text)
}
void refresh()
