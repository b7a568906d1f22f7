import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, escapeControls, exits, print, printJson } from 'svc/cli'
import { countOf, requireSession, sessionArgs } from './client.ts'

export default defineCommand({
  description:
    'Delete a conversation and its messages, for good. When it is the active one, the agent gets a new, empty one.',
  args: { ...sessionArgs, ...clientArgs },
  examples: [
    ['svc session delete 0f6a9c1e', 'by the beginning of its id'],
    ['svc session delete taxes --agent scout', 'by its label'],
  ],
  async run(args) {
    const { session, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireSession(client, args.session, args.agent)
      return { session: found, answer: await client.call('DELETE', `/api/sessions/${found.id}`, v.unknown()) }
    })
    if (args.json) printJson(answer)
    else {
      const title = session.title === '' ? '' : ` (${escapeControls(session.title)})`
      print(`session ${session.id}${title} was removed, with its ${countOf(session.message_count)}`)
    }
    return exits.ok
  },
})
