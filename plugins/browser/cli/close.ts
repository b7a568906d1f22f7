import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  print,
  printJson,
} from 'svc/cli'
import { BrowserList } from './client.ts'

export default defineCommand({
  description: 'Close the browser of an agent. Its cookies and open pages are gone; the agent can open another.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    ...clientArgs,
  },
  examples: [['svc browser close researcher', 'with all of its pages']],
  async run(args) {
    const answer = await callDaemon(await connect(args), async (client) => {
      const { sessions } = await client.call('GET', '/api/browser/sessions', BrowserList)
      const found = sessions.find(({ agent_id: id, agent_name: name }) => [id, name].includes(args.agent))
      if (!found)
        throw new Failure(
          exits.notFound,
          `no browser of "${args.agent}" is open`,
          `${commandLine('browser list')} shows those that are`,
        )
      const path = `/api/browser/sessions/${found.agent_id}`
      return { ...found, ...(await client.call('DELETE', path, v.looseObject({ status: v.string() }))) }
    })
    if (args.json) printJson({ status: answer.status, agent_id: answer.agent_id })
    else print(escapeControls(`The browser of ${answer.agent_name || answer.agent_id} is closed`))
    return exits.ok
  },
})
