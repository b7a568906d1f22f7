import { attempt, call, element, openDialog, time } from '../../kit/kit.js'

const BOXES = {
  outbox: { title: 'Dead letters', hint: 'Messages that could not be sent.', retried: 'is sent again' },
  inbox: {
    title: 'Parked messages',
    hint: 'Messages of people that could not be answered.',
    retried: 'is answered again',
  },
}

/** Messages that were put aside, with what can be done about them. */
export function messageBox({ name, box, messages, finish }) {
  if (messages.length === 0) return undefined
  const { title, hint } = BOXES[box]
  return element(
    'section',
    { className: 'card', 'aria-label': title },
    element('h3', {}, title),
    element('p', { className: 'hint' }, hint),
    element(
      'ul',
      { className: 'messages' },
      messages.map((message) => row({ name, box, message, finish })),
    ),
  )
}

function row({ name, box, message, finish }) {
  const { id, text, attempts, account_id: account, created_at: made, received_at: received } = message
  const path = `/api/channels/${encodeURIComponent(name)}/${box}/${id}`
  const retry = async () => {
    await call('POST', `${path}/retry`)
    await finish(`The message ${BOXES[box].retried}.`)
  }
  const discard = () =>
    openDialog({
      title: 'Discard the message?',
      content: element('p', { className: 'quote' }, text || '(no text)'),
      confirm: 'Discard',
      isDangerous: true,
      async submit() {
        await call('DELETE', path)
        await finish('The message is discarded.')
      },
    })
  const tried = attempts === 1 ? 'tried once' : `tried ${attempts} times`
  const chat = message.chat_id === undefined ? '' : `to ${message.chat_id}, `
  const of = account === 'default' ? '' : `${account}, `
  return element(
    'li',
    {},
    element('p', { className: 'quote' }, text || '(no text)'),
    element('p', { className: 'hint' }, of, chat, time(made ?? received), `, ${tried}`),
    element('p', { className: 'problem' }, message.error ?? message.reason ?? 'no reason is known'),
    element(
      'div',
      { className: 'actions start' },
      element('button', { type: 'button', 'data-focus': `retry ${id}`, onclick: () => void attempt(retry) }, 'Retry'),
      element('button', { type: 'button', 'data-focus': `discard ${id}`, onclick: discard }, 'Discard'),
    ),
  )
}
