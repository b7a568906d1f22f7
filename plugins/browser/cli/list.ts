import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { BrowserList } from './client.ts'

export default defineCommand({
  description: 'List the browsers that agents have open at this daemon, and what they show.',
  args: { ...clientArgs },
  examples: [['svc browser list', 'who looks at what']],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) =>
      client.call('GET', '/api/browser/sessions', BrowserList),
    )
    if (args.json) printJson(found)
    else {
      if (found.problem !== null) note(`svc: warning: ${escapeControls(found.problem)}`)
      const rows = found.sessions.map(({ agent_id: id, agent_name: name, url, title, last_used_at: used }) =>
        [name === '' ? id : name, url.slice(0, 100), title.slice(0, 60), used].map((text) => escapeControls(text)),
      )
      print(rows.length === 0 ? 'No browser is open.' : renderTable(['AGENT', 'ADDRESS', 'TITLE', 'LAST USED'], rows))
    }
    return exits.ok
  },
})
