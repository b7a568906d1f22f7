import {
  byId,
  call,
  element,
  facts,
  keepInAddress,
  livePage,
  openDialog,
  replace,
  show,
  table,
  time,
  whileBusy,
} from '../../kit/kit.js'

const POLL_MS = 30_000
const PAGE = 50
keepInAddress(byId('event-type'), byId('agent'))
const filter = { event_type: byId('event-type').value, agent_id: byId('agent').value }
/** Older entries that were asked for. */
let older = []
let names = new Map()

const refresh = livePage({
  content: [byId('state'), byId('filter'), byId('entries')],
  submit: 'Show the trail',
  async load() {
    const [page, agents] = await Promise.all([recent(), call('GET', '/api/agents')])
    names = new Map(agents.map(({ id, name }) => [id, name]))
    const select = byId('agent')
    const chosen = select.value
    replace(
      select,
      element('option', { value: '' }, 'all'),
      agents.map(({ id, name }) => element('option', { value: id }, name)),
    )
    select.value = chosen
    replace(
      byId('event-types'),
      [...new Set(page.entries.map(({ event_type: type }) => type))]
        .toSorted()
        .map((value) => element('option', { value })),
    )
    drawState(page)
    drawEntries(page)
  },
  words: ['audit'],
  everyMs: POLL_MS,
})

const recent = (before) => {
  const query = new URLSearchParams({ limit: String(PAGE) })
  for (const [key, value] of Object.entries(filter)) if (value !== '') query.set(key, value)
  if (before !== undefined) query.set('before', String(before))
  return call('GET', `/api/audit/recent?${query}`)
}

byId('filter').addEventListener('submit', (event) => {
  event.preventDefault()
  filter.event_type = byId('event-type').value.trim()
  filter.agent_id = byId('agent').value
  older = []
  void refresh()
})

function drawState({ total, tip_hash: tip }) {
  const verify = element('button', { type: 'button', 'data-focus': 'verify' }, 'Verify')
  verify.addEventListener('click', () => void whileBusy(verify, 'Verifying …', check))
  const summary = total === 1 ? 'One entry.' : `${total.toLocaleString()} entries.`
  replace(
    byId('state'),
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, summary),
      element('div', { className: 'buttons' }, verify),
    ),
    element('dl', {}, ...facts([['newest hash', element('code', {}, tip)]])),
  )
}

async function check() {
  try {
    const { valid, chain_length: length, first_invalid_id: id, reason, anchor } = await call('GET', '/api/audit/verify')
    show(
      'problem',
      valid ? '' : `The trail is broken${id === undefined ? '' : ` at entry ${id}`}: ${reason ?? 'see the log'}.`,
    )
    const kept = anchor === 'known' ? ' It continues what this home remembers of it.' : ''
    show('notice', valid ? `All ${length.toLocaleString()} entries are as they were written.${kept}` : '')
  } catch (error) {
    show('problem', error.message)
  }
}

function drawEntries({ entries, total }) {
  const newest = entries.toSorted((one, other) => other.id - one.id)
  const known = new Set(newest.map(({ id }) => id))
  const rows = [...newest, ...older.filter(({ id }) => !known.has(id))]
  const last = rows.at(-1)
  const more = element('button', { type: 'button', 'data-focus': 'more' }, 'Older entries')
  more.addEventListener('click', () =>
    whileBusy(more, 'Loading …', async () => {
      const page = await recent(last.id)
      older = [...older, ...page.entries.toSorted((one, other) => other.id - one.id)]
      drawEntries({ entries, total })
      if (page.entries.length === 0) show('notice', 'There are no older entries.')
    }),
  )
  replace(
    byId('entries'),
    table({
      caption: 'Entries, the newest first',
      rows,
      empty: 'No entry is like this. Choose another event or agent.',
      columns: [
        { title: 'Time', cell: (entry) => time(entry.timestamp) },
        { title: 'Event', cell: (entry) => element('code', {}, entry.event_type) },
        { title: 'Agent', cell: ({ agent_id: id }) => names.get(id) ?? id },
        { title: 'What', cell: (entry) => entry.details },
        { title: 'Entry', cell: proofButton },
      ],
    }),
    rows.length >= PAGE && last.id > 1 && element('div', { className: 'actions start' }, more),
  )
}

function proofButton(entry) {
  return element(
    'button',
    {
      type: 'button',
      'data-focus': `proof-${entry.id}`,
      'aria-label': `Proof of entry ${entry.id}`,
      onclick: () => void showProof(entry),
    },
    String(entry.id),
  )
}

async function showProof({ id, hash, prev_hash: previous, actor }) {
  try {
    const proof = await call('GET', `/api/audit/proof/${id}`)
    const link = element('a', { download: `audit-proof-${id}.json` }, 'Save the proof')
    link.href = URL.createObjectURL(new Blob([JSON.stringify(proof, undefined, 2)], { type: 'application/json' }))
    openDialog({
      title: `Entry ${id}`,
      content: [
        element(
          'dl',
          {},
          ...facts([
            ['hash', element('code', {}, hash)],
            ['hash before it', element('code', {}, previous)],
            ['by', actor],
            ['signed root', element('code', {}, proof.checkpoint.root)],
            ['signed at', time(proof.checkpoint.timestamp)],
          ]),
        ),
        element(
          'p',
          {},
          'The proof shows that a signed root contains this entry, without the rest of the trail. ',
          link,
        ),
      ],
      onClose: () => URL.revokeObjectURL(link.href),
    })
  } catch (error) {
    show('problem', error.message)
  }
}

void refresh()
