import { call, element, openDialog, show, whileBusy } from '../../kit/kit.js'
import { accountPath } from './state.js'

const POLL_MS = 2000

/** Signs in with a QR code: shows it, and follows how far it has come until the dialog is closed. */
export async function signIn({ name, title, id }, { finish }) {
  const image = element('img', {
    alt: `QR code to sign in to ${title}`,
    className: 'qr',
    width: 260,
    height: 260,
    hidden: true,
  })
  const message = element('p', { role: 'status' }, 'Starting …')
  const problem = element('p', { role: 'alert', className: 'problem', hidden: true })
  const again = element('button', { type: 'button', hidden: true }, 'New code')
  const closing = new AbortController()
  const dialog = openDialog({
    title: `Sign in to ${title}`,
    content: [image, message, problem, element('div', { className: 'actions start' }, again)],
    onClose: () => closing.abort(),
  })
  const draw = (step) => {
    message.textContent = step.message
    image.hidden = !step.qr_data_url
    if (step.qr_data_url) image.src = step.qr_data_url
    again.hidden = !step.expired
    show(problem, step.available || step.expired ? undefined : step.help)
  }
  const start = async () => {
    again.hidden = true
    const outcome = await follow({ name, id, draw, signal: closing.signal }).catch((error) => {
      show(problem, error.message)
      again.hidden = false
      return undefined
    })
    if (outcome?.connected !== true || closing.signal.aborted) return
    dialog.close()
    await finish(`${title} is signed in.`)
  }
  again.addEventListener('click', () => void whileBusy(again, 'Starting …', start))
  await start()
}

/** Ends when somebody signed in, the code has expired, or the dialog was closed. */
async function follow({ name, id, draw, signal }) {
  let step = await call('POST', accountPath(name, 'qr/start', id))
  for (;;) {
    if (signal.aborted) return undefined
    draw(step)
    if (!step.available || step.connected || step.expired) return step
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    if (signal.aborted) return undefined
    const session = encodeURIComponent(step.session_id)
    step = await call('GET', `${accountPath(name, 'qr/status', id)}&session_id=${session}`)
  }
}
