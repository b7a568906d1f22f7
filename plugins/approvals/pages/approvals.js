import { attempt, byId, call, element, facts, livePage, openDialog, replace, show, table, time } from '../../kit/kit.js'
import { formFields } from './form-fields.js'

const POLL_MS = 5_000
const refresh = livePage({
  content: [byId('pending'), byId('grants'), byId('decided')],
  submit: 'Show the approvals',
  async load() {
    const [{ approvals: pending }, { approvals: all }, { grants }] = await Promise.all([
      call('GET', '/api/approvals?status=pending'),
      call('GET', '/api/approvals?limit=50'),
      call('GET', '/api/approvals/grants'),
    ])
    document.title = pending.length === 0 ? 'Approvals' : `(${pending.length}) Approvals`
    drawPending(pending)
    drawGrants(grants)
    drawDecided(all.filter(({ status }) => status !== 'pending'))
  },
  words: ['approval'],
  everyMs: POLL_MS,
})

function drawPending(pending) {
  replace(
    byId('pending'),
    pending.length === 0 &&
      element(
        'p',
        { className: 'hint' },
        'Nothing waits for you. What an agent may do only with your approval is asked here.',
      ),
    pending.map(card),
  )
}

/** Escapes what is invisible or turns the direction of text: nobody approves what they cannot see. */
const visible = (text) =>
  text.replaceAll(
    /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu,
    (char) => `\\u{${char.codePointAt(0).toString(16)}}`,
  )

function card(approval) {
  const { agent_name: agent, intent, action_summary: action, description, payload, risk_level: risk } = approval
  const {
    expires_at: expires,
    needs_key: needsKey,
    scopes,
    first_approved_by: first,
    approvals_needed: needed,
  } = approval
  const details =
    payload === null ? 'Too long for a list: svc approval show has it.' : visible(JSON.stringify(payload, undefined, 2))
  return element(
    'section',
    { className: 'card', 'aria-label': `${agent} wants to ${intent}` },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, `${agent} wants to ${intent}`),
      element('span', { className: `badge ${risk === 'critical' ? 'bad' : 'warn'}` }, risk),
    ),
    element('pre', { className: 'action' }, action),
    description && element('p', {}, visible(description)),
    needed > 1 &&
      element(
        'p',
        { className: 'hint' },
        first ? `${first} approved it. A second person has to.` : 'Two people have to approve it.',
      ),
    element('details', { 'data-open': approval.id }, element('summary', {}, 'Details'), element('pre', {}, details)),
    element('dl', {}, ...facts([['until', time(expires)]])),
    scopes.length === 0 &&
      needsKey &&
      element('p', { className: 'problem warning' }, 'Only the API key can approve this.'),
    element(
      'div',
      { className: 'actions start' },
      scopes.includes('once') && button('Approve once', approval, () => approve(approval, 'once'), 'primary'),
      scopes.includes('session') && button('For this conversation', approval, () => askForSession(approval)),
      button('Always …', approval, () => tellAboutPolicy(approval)),
      button('Reject', approval, () => askForReason(approval)),
    ),
  )
}
function button(text, { id, agent_name: agent, intent }, onclick, className) {
  const name = `${text}: ${agent} wants to ${intent}`
  return element(
    'button',
    { type: 'button', className, 'data-focus': `${text} ${id}`, 'aria-label': name, onclick },
    text,
  )
}

function approve(approval, scope) {
  if (approval.form) return fillIn(approval, scope)
  return attempt(async () => {
    await call('POST', `/api/approvals/${approval.id}/approve`, { scope })
    await refresh()
  })
}

function fillIn({ id, form, agent_name: agent }, scope) {
  const { elements, read } = formFields(form.fields)
  openDialog({
    title: form.title ?? `What ${agent} asks for`,
    content: elements,
    confirm: 'Answer',
    async submit() {
      await call('POST', `/api/approvals/${id}/approve`, { scope, content: read() })
      await refresh()
    },
  })
}

function askForSession(approval) {
  openDialog({
    title: 'For this conversation?',
    content: element(
      'p',
      {},
      `Until the conversation ends, this passes without a question: ${approval.session_covers}.`,
    ),
    confirm: 'Approve',
    async submit() {
      await call('POST', `/api/approvals/${approval.id}/approve`, { scope: 'session' })
      await refresh()
    },
  })
}

/** What widens a guard is set in the file only, so that nobody who reaches this page can switch it off. */
function tellAboutPolicy({ agent_id: id, agent_name: agent }) {
  const lines = `[plugins.approvals.agents]\n"${id}" = "never"`
  openDialog({
    title: `Let ${agent} do this without asking?`,
    content: [
      element(
        'p',
        {},
        'That is decided in config.toml of the daemon, and not here: what may go unasked should not be one click away.',
      ),
      element('pre', {}, lines),
      element(
        'p',
        { className: 'hint' },
        `With it nothing that ${agent} does is asked. “For this conversation” lets the same kind of call pass until the conversation ends.`,
      ),
    ],
  })
}

function askForReason({ id, agent_name: agent }) {
  const field = element('textarea', { maxlength: '1024' })
  openDialog({
    title: `Reject what ${agent} wants?`,
    content: element('label', { className: 'field' }, 'Reason, which the agent reads', field),
    confirm: 'Reject',
    isDangerous: true,
    async submit() {
      const reason = field.value.trim()
      await call('POST', `/api/approvals/${id}/reject`, reason === '' ? undefined : { reason })
      await refresh()
    },
  })
}

function drawGrants(grants) {
  replace(
    byId('grants'),
    element('h2', {}, 'Standing approvals'),
    table({
      caption: 'Standing approvals',
      rows: grants,
      empty: 'None: everything that needs an approval is asked each time.',
      columns: [
        { title: 'What passes', cell: ({ covers }) => covers },
        { title: 'Agent', cell: ({ agent_name: name, agent_id: id }) => name ?? id },
        { title: 'Used', isNumber: true, cell: ({ uses }) => String(uses) },
        { title: 'Actions', cell: revokeButton },
      ],
    }),
  )
}
function revokeButton({ id, covers }) {
  return element(
    'button',
    {
      type: 'button',
      'data-focus': `revoke ${id}`,
      'aria-label': `Revoke: ${covers}`,
      onclick: () =>
        attempt(async () => {
          await call('DELETE', `/api/approvals/grants/${id}`)
          await refresh()
          show('notice', 'It is asked again from now on.')
        }),
    },
    'Revoke',
  )
}

function drawDecided(decided) {
  replace(
    byId('decided'),
    element('h2', {}, 'Decided'),
    table({
      caption: 'Decided, the newest first',
      rows: decided,
      empty: 'Nothing was decided yet.',
      columns: [
        { title: 'Time', cell: ({ decided_at: at, expires_at: expired }) => time(at ?? expired) },
        { title: 'Agent', cell: ({ agent_name: agent }) => agent },
        { title: 'What', cell: ({ action_summary: action }) => action },
        { title: 'Outcome', cell: ({ status, reason }) => (reason ? `${status}: ${reason}` : status) },
        { title: 'By', cell: ({ decided_by: who }) => who ?? '' },
      ],
    }),
  )
}

void refresh()
