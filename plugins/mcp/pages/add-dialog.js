import { call, element, openDialog } from '../../kit/kit.js'

/** Asks for a server, tries or adds it, and passes the answer to `onDone`. */
export function askForServer({ onDone }) {
  const fields = {
    name: field('Name', { hint: 'Lower-case letters, digits and hyphens' }),
    transport: choice('Transport', ['stdio', 'http', 'sse']),
    command: field('Program', { hint: 'Of a stdio server; it is confined to a folder of its own' }),
    args: area('Arguments', 'One a line'),
    url: field('Address', { hint: 'Of an http or sse server' }),
    network: field('Hosts', { hint: 'That the program may reach, such as api.example.com, with commas between them' }),
    variable: field('Secret variable', { hint: 'Name of a variable of the program, if it needs one' }),
    secret: field('Its value', { type: 'password', hint: 'Goes to the vault and is never shown' }),
    token: field('Bearer token', { type: 'password', hint: 'Of an http or sse server, if it needs one' }),
    client: field('Client id', { hint: 'Of a server with a login, if its vendor registered svc by hand' }),
    clientSecret: field('Client secret', { type: 'password', hint: 'Goes to the vault and is never shown' }),
    scopes: field('Scopes', { hint: 'To ask for at the login, with spaces between them; empty: those of the server' }),
    grant: choice('Who logs in', ['a person', 'the client itself']),
  }
  const outcome = element('p', { role: 'status', className: 'hint words outcome' })
  const tryIt = element('button', { type: 'button', onclick: () => void attempt(fields, outcome) }, 'Test')
  const update = () => {
    const isProgram = fields.transport.input.value === 'stdio'
    for (const key of ['command', 'args', 'network', 'variable', 'secret']) fields[key].block.hidden = !isProgram
    for (const key of ['url', 'token', 'client', 'clientSecret', 'scopes', 'grant'])
      fields[key].block.hidden = isProgram
  }
  fields.transport.input.addEventListener('change', update)
  update()
  openDialog({
    title: 'Add an MCP server',
    content: [
      ...Object.values(fields).map(({ block }) => block),
      // In one block: the buttons of the dialog itself stay in sight at its end.
      element('div', {}, element('div', { className: 'actions start' }, tryIt), outcome),
    ],
    confirm: 'Add',
    busy: 'Starting …',
    submit: async () => onDone(await call('POST', '/api/mcp/servers', bodyOf(fields))),
  })
}

async function attempt(fields, outcome) {
  outcome.textContent = 'Starting …'
  try {
    const { tools } = await call('POST', '/api/mcp/servers/test', bodyOf(fields))
    outcome.textContent = `It works: ${tools.map(({ name }) => name).join(', ') || 'no tools'}`
  } catch (error) {
    outcome.textContent = error.message
  }
  outcome.scrollIntoView({ block: 'nearest' })
}

function bodyOf(fields) {
  const value = (key) => fields[key].input.value.trim()
  const transport = value('transport')
  const body = { name: value('name'), transport }
  if (transport !== 'stdio') {
    body.url = value('url')
    if (value('token') !== '') body.headers = { Authorization: `Bearer ${value('token')}` }
    const oauth = clientOf(value)
    if (Object.keys(oauth).length > 0) body.oauth = oauth
    return body
  }
  body.command = value('command')
  body.args = split(value('args'), '\n')
  body.network = split(value('network'), ',')
  if (value('variable') !== '') {
    body.env = [value('variable')]
    body.credentials = { [value('variable')]: value('secret') }
  }
  return body
}
/** What is not filled in is left out; the daemon says what does not fit together. */
function clientOf(value) {
  return {
    ...(value('client') !== '' && { client_id: value('client') }),
    ...(value('clientSecret') !== '' && { client_secret: value('clientSecret') }),
    ...(value('scopes') !== '' && { scopes: split(value('scopes'), ' ') }),
    ...(value('grant') === 'the client itself' && { grant: 'client_credentials' }),
  }
}
const split = (text, by) =>
  text
    .split(by)
    .map((part) => part.trim())
    .filter((part) => part !== '')

let fieldCount = 0
function labelled(label, input, hint) {
  input.id = `field-${++fieldCount}`
  const block = element(
    'div',
    { className: 'field' },
    element('label', { for: input.id }, label),
    input,
    hint && element('p', { className: 'hint' }, hint),
  )
  return { block, input }
}
function field(label, { type = 'text', hint } = {}) {
  return labelled(label, element('input', { type, autocomplete: 'off', spellcheck: 'false' }), hint)
}
function area(label, hint) {
  return labelled(label, element('textarea', { rows: '2', spellcheck: 'false' }), hint)
}
function choice(label, values) {
  return labelled(label, element('select', {}, ...values.map((value) => element('option', { value }, value))))
}
