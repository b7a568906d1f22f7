import { call, element, openDialog } from '../../kit/kit.js'

/** Asks for what an integration needs, adds it, and passes the answer to `onDone`. */
export function askToAdd(entry, { isTaken, onDone }) {
  const name = field({ id: 'name', label: 'Name', value: isTaken ? '' : entry.name, required: true })
  const inputs = entry.required_env.map((variable) => [variable.name, variableField(variable)])
  const canLogin = entry.has_oauth && !entry.needs_login
  openDialog({
    title: `Add ${entry.name}`,
    content: [
      entry.setup_instructions && element('p', { className: 'words' }, entry.setup_instructions),
      name.block,
      ...inputs.map(([, { block }]) => block),
      canLogin && element('p', { className: 'hint' }, 'Leave the secret empty to sign in with the vendor.'),
    ],
    confirm: 'Add',
    busy: 'Starting …',
    async submit() {
      const filled = inputs.map(([key, { input }]) => [key, input.value.trim()]).filter(([, value]) => value !== '')
      const own = name.input.value.trim()
      const body = { type: entry.id, credentials: Object.fromEntries(filled) }
      // The id is made of a name; without one it is that of the catalogue.
      if (own !== '' && own !== entry.name) body.name = own
      await onDone(await call('POST', '/api/integrations/add', body))
    },
  })
}

function variableField({ name, label, help, is_secret: isSecret, get_url: url, required, default: fallback }) {
  const hint = [
    help,
    url && element('a', { href: url, target: '_blank', rel: 'noreferrer noopener' }, 'Get it'),
    !required && !fallback && 'It can be left empty.',
  ].filter(Boolean)
  return field({ id: name, label, hint, isSecret, placeholder: fallback ?? '' })
}

function field({ id, label, hint = [], isSecret = false, value = '', placeholder }) {
  const input = element('input', {
    id: `field-${id}`,
    type: isSecret ? 'password' : 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder,
    'aria-describedby': hint.length > 0 && `hint-${id}`,
  })
  input.value = value
  const words = hint.flatMap((part, index) => (index === 0 ? [part] : [' ', part]))
  const block = element(
    'div',
    { className: 'field' },
    element('label', { for: `field-${id}` }, label),
    input,
    hint.length > 0 && element('p', { id: `hint-${id}`, className: 'hint words' }, words),
  )
  return { block, input }
}
