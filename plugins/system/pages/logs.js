import { byId, call, element, follow, keepInAddress, show, showNavigation, withKey } from '../../kit/kit.js'

const TAIL = 200
const MAX_LINES = 2_000
const RETRY_MS = 3_000
const lines = byId('lines')
const indicator = byId('live')
let reading
keepInAddress(byId('level'), byId('text'))

const refresh = withKey({
  content: [byId('filter'), lines, indicator],
  submit: 'Show the log',
  async load() {
    // Refuses without a key; the stream itself is tried again for ever.
    await call('GET', '/api/status')
    await showNavigation()
    start()
  },
})

byId('filter').addEventListener('submit', (event) => event.preventDefault())
byId('level').addEventListener('change', start)
let typing
byId('text').addEventListener('input', () => {
  clearTimeout(typing)
  typing = setTimeout(start, 300)
})
document.addEventListener('visibilitychange', () => (document.hidden ? reading?.abort() : start()))

function start() {
  reading?.abort()
  reading = new AbortController()
  lines.replaceChildren()
  void read(reading.signal)
}

async function read(signal) {
  const query = new URLSearchParams({ level: byId('level').value, tail: String(TAIL) })
  const text = byId('text').value.trim()
  if (text !== '') query.set('filter', text)
  while (!signal.aborted) {
    try {
      for await (const line of follow(`/api/logs/stream?${query}`, signal, () => say('live', 'Live'))) add(line)
    } catch (error) {
      if (signal.aborted) return
      say('lost', error.status === 0 ? 'No connection' : 'Interrupted')
      if (error.status !== 0) show('problem', error.message)
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    // What is known already comes once more.
    if (!signal.aborted) lines.replaceChildren()
  }
}
function say(state, text) {
  indicator.dataset.state = state
  indicator.textContent = text
}

function add({ timestamp, level, tag, message, fields, missed }) {
  if (missed > 0) lines.append(element('li', { className: 'hint' }, `${missed} lines are left out.`))
  const rest = fields && Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ''
  lines.append(
    element(
      'li',
      { 'data-level': level },
      element('time', { datetime: timestamp, title: timestamp }, new Date(timestamp).toLocaleTimeString()),
      ' ',
      element('b', {}, level.padEnd(5)),
      ` [${tag}] ${message}`,
      rest && element('span', { className: 'fields' }, rest),
    ),
  )
  while (lines.childElementCount > MAX_LINES) lines.firstElementChild.remove()
  if (byId('follow').checked) lines.scrollTop = lines.scrollHeight
}

void refresh()
