import * as v from 'valibot'
import { escapeControls } from '../log/text.ts'
import { clientArgs, command } from './command.ts'
import { ask, connect } from './connect.ts'
import { exits } from './failure.ts'
import { print, printJson } from './output.ts'
import { requireSession, sessionArgs } from './sessions.ts'
import { commandLine } from '../process/command-name.ts'

export default command({
  description: `Make a conversation the active one of its agent: the page, channels and ${commandLine('chat')} go on there. To talk in one and leave the active one as it is, use ${commandLine('chat --session')}.`,
  args: { ...sessionArgs, ...clientArgs },
  examples: [
    ['svc session switch 2', 'the second one of `svc session list`'],
    ['svc session switch taxes --agent scout', 'by its label'],
  ],
  async run(args) {
    const { session, answer } = await ask(await connect(args), async (client) => {
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
