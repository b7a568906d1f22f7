import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import { listSessions } from './client.ts'

export default defineCommand({
  description:
    'List the conversations with an agent, newest first. The active one (*) is where the next message goes ' +
    'unless one says otherwise.',
  args: {
    agent: { type: 'positional', required: false, description: 'Name or id of the agent (default: assistant)' },
    ...clientArgs,
  },
  examples: [
    ['svc session list', 'those with the agent "assistant"'],
    ['svc chat --session 2', 'go on with the second one of the list'],
    ["svc session list scout --json | jq -r '.[].id'", 'ids for a script'],
  ],
  async run(args) {
    const { agent, sessions } = await callDaemon(await connect(args), async (client) => {
      const found = await requireAgent(client, args.agent)
      return { agent: found, sessions: await listSessions(client, found.id) }
    })
    if (args.json) printJson(sessions)
    else if (sessions.length === 0) print(`There is no conversation with "${agent.name}" yet.`)
    else
      print(
        renderTable(
          ['', 'NUMBER', 'TITLE', 'MESSAGES', 'BEGUN', 'ID'],
          sessions.map((session, index) => [
            session.active ? '*' : '',
            String(index + 1),
            session.title === '' ? '(no messages yet)' : session.title,
            String(session.message_count),
            renderTime(session.created_at),
            session.id,
          ]),
        ),
      )
    return exits.ok
  },
})
