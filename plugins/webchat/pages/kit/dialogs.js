import { element, focusOn, show, whileBusy } from './elements.js'

/**
 * Opens a modal form. `submit` does its work and then the form closes, unless it returns `false`; what it throws is shown
 * in the form, or by `onError` if that returns true. Without `submit` there is only a button that closes. Returns the
 * dialog.
 */
export function openDialog({
  title,
  content = [],
  confirm,
  busy = 'Working …',
  isDangerous,
  submit,
  onError,
  onClose,
  cancel,
}) {
  const problem = element('p', { role: 'alert', className: 'problem', hidden: true })
  const accept = submit && element('button', { className: isDangerous ? 'danger' : 'primary' }, confirm)
  const leave = element('button', { type: 'button', value: 'cancel' }, cancel ?? (submit ? 'Cancel' : 'Close'))
  // One dialog may open above another.
  const id = `dialog-title-${document.querySelectorAll('dialog').length}`
  const heading = element('h2', { id, tabindex: '-1' }, title)
  const form = element('form', { novalidate: true }, heading, content, problem)
  form.append(element('div', { className: 'actions' }, leave, accept))
  const dialog = element('dialog', { 'aria-labelledby': id }, form)
  const opener = document.activeElement
  leave.addEventListener('click', () => dialog.close())
  dialog.addEventListener('close', () => {
    dialog.remove()
    // The page may have been drawn anew meanwhile, and what was done may be in view, far from the button.
    if (opener?.isConnected) opener.focus({ preventScroll: true })
    else if (opener?.dataset.focus) focusOn(opener.dataset.focus)
    onClose?.()
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (accept && !accept.disabled) void whileBusy(accept, busy, () => run(submit, { dialog, problem, onError }))
  })
  document.body.append(dialog)
  dialog.showModal()
  const field = form.querySelector('input:not([type=hidden]), select, textarea')
  // Not a dangerous button: Enter must not remove what the user only looks at.
  if (field) field.focus()
  else if (accept && !isDangerous) accept.focus()
  else heading.focus()
  return dialog
}

/** Does something that was asked for on the page, and says in a dialog why it failed. */
export async function attempt(work) {
  try {
    await work()
  } catch (error) {
    openDialog({ title: 'It was not done', content: element('p', {}, error.message) })
  }
}

async function run(submit, { dialog, problem, onError }) {
  show(problem)
  try {
    if ((await submit()) !== false) dialog.close()
  } catch (error) {
    if (onError?.(error) === true) return
    show(problem, error.message)
    // In a long form on a small screen it would stay out of sight.
    problem.scrollIntoView({ block: 'center' })
  }
}
