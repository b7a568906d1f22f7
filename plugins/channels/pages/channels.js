import { byId, call, keepInAddress, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { channelList } from './channel-list.js'
import { channelPanel, readChannel } from './panel.js'

/** Counters are not logged: they are read again after this time. */
const POLL_MS = 4000

let rows = []
let drawn = ''
/** The channel in the panel, as the address names it. */
const chosen = () => decodeURIComponent(location.hash.slice(1))

const refresh = livePage({
  content: [byId('channels')],
  submit: 'Show the channels',
  async load() {
    rows = (await call('GET', '/api/channels')).channels
    renderList()
    await renderPanel()
  },
  words: ['channel'],
  everyMs: POLL_MS,
})

function renderList() {
  const { groups, count } = channelList(rows, {
    text: byId('filter').value,
    which: byId('which').value,
    chosen: chosen(),
  })
  byId('count').textContent = count
  replace(byId('groups'), groups)
}

async function renderPanel() {
  const name = chosen()
  const panel = byId('panel')
  document.body.classList.toggle('has-panel', name !== '')
  panel.hidden = name === ''
  if (name === '') return
  const found = await readChannel(name)
  // Somebody chose another one meanwhile.
  if (name !== chosen()) return
  // What has not changed is not drawn again: a text that is being read or selected stays.
  const now = JSON.stringify(found)
  if (now === drawn) return
  drawn = now
  panel.setAttribute('aria-label', found.view.display_name)
  replace(panel, channelPanel(found, { finish }))
}

/** Says what was done, and shows what it changed. */
async function finish(text) {
  await refresh()
  show('notice', text)
}

addEventListener('hashchange', async () => {
  show('notice')
  drawn = ''
  renderList()
  if (!(await refresh())) return
  if (chosen() !== '') byId('panel').focus({ preventScroll: true })
  else byId('filter').focus({ preventScroll: true })
  scrollTo({ top: 0 })
})
byId('filter').addEventListener('input', renderList)
byId('which').addEventListener('input', renderList)
byId('reload').addEventListener('click', () =>
  openDialog({
    title: 'Reload all channels?',
    content: 'The configuration is read again, and every channel connects anew. Messages that wait are kept.',
    confirm: 'Reload',
    busy: 'Reloading …',
    async submit() {
      const { started } = await call('POST', '/api/channels/reload')
      await finish(started.length === 0 ? 'Reloaded: no channel is enabled.' : `Reloaded: ${started.join(', ')}.`)
    },
  }),
)
keepInAddress(byId('filter'), byId('which'))
void refresh()
