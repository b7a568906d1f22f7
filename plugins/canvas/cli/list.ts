import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'
import { listCanvases } from './canvas.ts'

export default defineCommand({
  description: 'List what agents showed with canvas_present, the newest first.',
  args: {
    agent: { type: 'string', description: 'Only those of the agent with this id', valueHint: 'id' },
    session: { type: 'string', description: 'Only those of the session with this id', valueHint: 'id' },
    ...clientArgs,
  },
  examples: [['svc canvas list', 'all that are kept']],
  async run(args) {
    const query = new URLSearchParams()
    if (args.agent !== undefined) query.set('agent_id', args.agent)
    if (args.session !== undefined) query.set('session_id', args.session)
    const canvases = await callDaemon(await connect(args), (client) => listCanvases(client, query.toString()))
    if (args.json) printJson({ canvases })
    else if (canvases.length === 0) print('There are no canvases.')
    else
      print(
        renderTable(
          ['TITLE', 'SHOWN', 'AGENT', 'ID'],
          canvases.map((each) => [
            escapeControls(each.title),
            renderTime(each.created_at),
            each.agent_id,
            each.canvas_id,
          ]),
        ),
      )
    return exits.ok
  },
})
