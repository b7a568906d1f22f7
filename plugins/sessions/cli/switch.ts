import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  escapeControls,
  exits,
  print,
  printJson,
} from 'svc/cli'
import { requireSession, sessionArgs } from './client.ts'

export default defineCommand({
  description:
    `Make a conversation the active one of its agent: the page, channels and ${commandLine('chat')} go on there. ` +
    `To talk in one and leave the active one as it is, use ${commandLine('chat --session <session>')}.`,
  args: { ...sessionArgs, ...clientArgs },
  examples: [
    ['svc session switch 2', 'the second one of `svc session list`'],
    ['svc session switch taxes --agent scout', 'by its label'],
  ],
  async run(args) {
    const { session, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireSession(client, args.session, args.agent)
      const path = `/api/agents/${found.agent_id}/sessions/${found.id}/switch`
      return { session: found, answer: await client.call('POST', path, v.unknown()) }
    })
    if (args.json) printJson(answer)
    else {
      const { title } = session
      print(`session ${session.id}${title === '' ? '' : ` (${escapeControls(title)})`} is the active one now`)
    }
    return exits.ok
  },
})
