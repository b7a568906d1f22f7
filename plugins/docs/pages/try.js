import { element, request, show, whileBusy } from '../../kit/kit.js'
import { addCopyButton } from './copy.js'
import { bodyField, curlOf, fieldOf, headersOf, urlOf } from './request.js'

/** More is not shown: it would make the page slow. */
const MAX_SHOWN = 200_000

/** A form that sends a request to the route, with the key of the page, and shows the answer. */
export function tryForm({ method, path, operation, api }) {
  if (operation.responses[101]) return element('p', { className: 'hint' }, 'Connect to it with a WebSocket client.')
  const parameters = (operation.parameters ?? []).map((parameter) => ({ ...parameter, field: fieldOf(parameter, api) }))
  const body = bodyField(operation.requestBody)
  const send = element('button', { className: 'primary' }, 'Send')
  const problem = element('p', { role: 'alert', className: 'problem', hidden: true })
  const answer = answerView()
  const command = element('code')
  const curl = element('pre', { tabindex: '0', 'aria-label': 'The command' }, command)
  const form = element(
    'form',
    { className: 'try card', novalidate: true, 'aria-label': `Try ${method.toUpperCase()} ${path}` },
    element('h3', {}, 'Try it'),
    parameters.map(({ name, required, field }) =>
      element('label', { className: 'field' }, `${name}${required ? '' : ' (may be left out)'}`, field),
    ),
    body && element('label', { className: 'field' }, body.label, body.field),
    operation['x-effect'] === 'lasting' && element('p', { className: 'hint' }, 'This changes the running daemon.'),
    element('div', { className: 'actions start' }, send, answer.stop),
    element('details', {}, element('summary', {}, 'The same with curl'), curl),
    problem,
    answer.place,
  )
  addCopyButton(curl)
  const showCommand = () => {
    command.textContent = curlOf({ method, url: urlOf(path, parameters), headers: headersOf(parameters), body })
  }
  showCommand()
  form.addEventListener('input', showCommand)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (send.disabled) return
    const missing = parameters.find(({ required, field }) => required && field.value === '')
    show(problem, missing && `Fill in ${missing.name}.`)
    if (missing) missing.field.focus()
    else void whileBusy(send, 'Sending …', run)
  })
  async function run() {
    try {
      const { headers, content } = body?.read() ?? {}
      const init = { headers: { ...headersOf(parameters), ...headers }, body: content }
      await answer.load((signal) => request(method.toUpperCase(), urlOf(path, parameters), { ...init, signal }))
    } catch (error) {
      show(problem, error.message)
    }
  }
  return form
}

/** The place of an answer, and a button that stops one that goes on for long. */
function answerView() {
  const status = element('p', { role: 'status', className: 'hint' })
  const text = element('code')
  const block = element('pre', { tabindex: '0', 'aria-label': 'Answer' }, text)
  const place = element('div', { className: 'answer', hidden: true }, status, block)
  addCopyButton(block)
  const stop = element('button', { type: 'button', hidden: true }, 'Stop')
  let ending
  stop.addEventListener('click', () => ending.abort())
  async function load(send) {
    ending = new AbortController()
    stop.hidden = false
    try {
      const started = performance.now()
      const response = await send(ending.signal)
      const ms = Math.round(performance.now() - started)
      const type = response.headers.get('content-type') ?? ''
      place.hidden = false
      status.textContent = [`${response.status} ${response.statusText}`, `${ms} ms`, type].filter(Boolean).join(' · ')
      await showBody(response, type, text)
    } catch (error) {
      if (!ending.signal.aborted) throw error
    } finally {
      stop.hidden = true
    }
  }
  return { place, stop, load }
}

/** A stream is shown as it comes. */
async function showBody(response, type, place) {
  place.textContent = ''
  if (type !== '' && !/^text\/|json|xml|javascript/.test(type)) {
    const { size } = await response.blob()
    place.textContent = `${size} bytes of ${type}`
    return
  }
  let text = ''
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true }
    if (done) break
    text += value
    if (text.length <= MAX_SHOWN) place.textContent = text
  }
  const whole = type.includes('json') ? pretty(text) : text
  place.textContent =
    whole.length > MAX_SHOWN ? `${whole.slice(0, MAX_SHOWN)}\n… ${whole.length - MAX_SHOWN} characters more` : whole
}
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text // A stream of lines, or cut off.
  }
}
