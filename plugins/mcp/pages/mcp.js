import { attempt, byId, call, element, livePage, openDialog, openLogin, replace, show } from '../../kit/kit.js'
import { askForServer } from './add-dialog.js'
import { serverCard } from './server-card.js'

const POLL_MS = 10_000
/** The dialog that waits for a login, and whose. */
let waiting
const refresh = livePage({
  content: [byId('content')],
  submit: 'Show the MCP servers',
  async load() {
    const [{ servers }, changes] = await Promise.all([call('GET', '/api/mcp/servers'), readChanges()])
    render(servers, changes)
    noticeLogin(servers)
  },
  words: ['mcp', 'approval'],
  everyMs: POLL_MS,
})

/** Tools that wait for an approval; without the plugin for approvals none do. A request of an agent is none of them. */
async function readChanges() {
  try {
    const { approvals } = await call('GET', '/api/approvals?status=pending')
    const changes = approvals.filter(({ action, agent_id: agent }) => agent === '' && action.startsWith('mcp:'))
    return await Promise.all(changes.map(({ id }) => call('GET', `/api/approvals/${encodeURIComponent(id)}`)))
  } catch (error) {
    if (error.status === 404) return []
    throw error
  }
}

function render(servers, changes) {
  replace(
    byId('servers'),
    servers.length === 0
      ? [
          element(
            'p',
            { className: 'hint' },
            'There are no MCP servers yet. One gives agents more tools: “Add a server”, or add an integration on the page Integrations.',
          ),
        ]
      : servers.map((server) =>
          serverCard(server, {
            ...actionsOf(server),
            changed: changes.find(({ action }) => action === `mcp:${server.name}`),
          }),
        ),
  )
}

function actionsOf({ name }) {
  const path = `/api/mcp/servers/${encodeURIComponent(name)}`
  return {
    onRestart: () =>
      orSay(async () => {
        const { tools } = await call('POST', `${path}/restart`)
        await refresh()
        show('notice', `${name} is connected and has ${tools.length} tools.`)
      }),
    onLog: () =>
      orSay(async () => {
        const { log } = await call('GET', `${path}/log`)
        openDialog({
          title: `Log of ${name}`,
          content: element('pre', { className: 'words', tabindex: '0' }, log === '' ? 'It is empty.' : log),
        })
      }),
    onApprove: ({ id }) =>
      orSay(async () => {
        await call('POST', `/api/approvals/${encodeURIComponent(id)}/approve`, {})
        await refresh()
        show('notice', `The tools of ${name} are approved as they are now.`)
      }),
    onLogin: () => orSay(() => login(name, path)),
    onRemove: () =>
      openDialog({
        title: `Remove ${name}?`,
        content: element('p', {}, 'Its program ends, and its secrets are deleted. Agents can no longer use its tools.'),
        confirm: 'Remove',
        busy: 'Removing …',
        isDangerous: true,
        async submit() {
          await call('DELETE', path)
          await refresh()
          show('notice', `${name} is removed.`)
        },
      }),
  }
}

/** The server asks the person on a page of its own, and sends the browser back to the daemon. */
async function login(name, path) {
  const { status, authorization_url: url } = await call('POST', `${path}/login`)
  if (status === 'logged_in') {
    await refresh()
    show('notice', `${name} needs no login.`)
    return
  }
  const dialog = openLogin({
    title: `Log in at ${name}`,
    hint: 'The page of the server sends you back to this daemon when you have logged in.',
    link: `Open the login of ${name}`,
    url,
    refresh,
    onClose() {
      waiting = undefined
    },
  })
  waiting = { name, dialog }
}
/** The login happens on another page: what the person left here has nothing to say any more when it is done. */
function noticeLogin(servers) {
  const { name, dialog } = waiting ?? {}
  if (name === undefined || servers.find((each) => each.name === name)?.state === 'login_required') return
  dialog.close()
  show('notice', `You are logged in at ${name}.`)
}
async function orSay(work) {
  show('notice')
  await attempt(work)
}

byId('add').addEventListener('click', () => {
  show('notice')
  askForServer({
    async onDone({ name, state, tools }) {
      await refresh()
      show('notice', state === 'connected' ? `${name} is added with ${tools.length} tools.` : `${name} is added.`)
    },
  })
})
void refresh()
