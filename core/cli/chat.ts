import { createInterface } from 'node:readline/promises'
import { clientArgs, command } from './command.ts'
import { ask, connect, requireAgent } from './connect.ts'
import { Conversation } from './conversation.ts'
import { exits } from './failure.ts'
import { requireSession } from './sessions.ts'

export default command({
  description:
    'Talk to an agent. Lines of standard input are messages, also when it is not a terminal; /help lists the commands.',
  args: {
    agent: { type: 'positional', required: false, description: 'Name or id of the agent (default: assistant)' },
    message: {
      type: 'string',
      alias: 'm',
      valueHint: 'text',
      description: 'Send this one message, print the answer and end',
    },
    session: {
      type: 'string',
      alias: 's',
      valueHint: 'session',
      description: 'Go on in this conversation: its number in `svc session list`, its label or its id',
    },
    ...clientArgs,
  },
  examples: [
    ['svc chat', 'talk to the agent "assistant"'],
    ['svc chat --session 2', 'go on with an earlier conversation'],
    ['svc chat scout -m "What is new?"', 'one question, one answer'],
    ['echo "Hello" | svc chat', 'from a script'],
    ['svc chat --json -m Hello', 'every event as a JSON line'],
  ],
  async run(args) {
    const connection = await connect(args)
    const { agent, session } = await ask(connection, async (client) => {
      const found = await requireAgent(client, args.agent)
      return {
        agent: found,
        session: args.session === undefined ? undefined : await requireSession(client, args.session, found.id),
      }
    })
    const talk = new Conversation({
      connection,
      agent,
      session,
      json: args.json === true,
      colored: process.stdout.isTTY === true && !process.env['NO_COLOR'],
    })
    return args.message === undefined ? await converse(talk) : await once(talk, args.message)
  },
})

async function once(talk: Conversation, message: string): Promise<number> {
  const onInterrupt = (): void => {
    if (!talk.cancel()) process.exit(exits.interrupted)
  }
  process.on('SIGINT', onInterrupt)
  try {
    await talk.send(message)
    return talk.cancelled ? exits.interrupted : exits.ok
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

/** Messages go one after the other; a line typed during an answer waits, but /stop does not. */
async function converse(talk: Conversation): Promise<number> {
  const terminal = process.stdin.isTTY === true
  const lines = createInterface({
    input: process.stdin,
    ...(terminal ? { output: process.stdout } : {}),
    terminal,
    prompt: talk.prompt,
  })
  let failure: unknown
  let work = Promise.resolve()
  // Not the end of the input: what was typed before that is still sent.
  let left = false
  const leave = (): void => {
    left = true
    lines.close()
  }
  const onInterrupt = (): void => {
    // The first one ends the answer, the next one the program.
    if (talk.cancel()) return
    leave()
  }
  if (terminal) lines.on('SIGINT', onInterrupt)
  else process.on('SIGINT', onInterrupt)
  try {
    if (terminal) talk.greet()
    lines.prompt()
    lines.on('line', (line) => {
      if (talk.answersApproval(line)) {
        if (terminal) lines.prompt()
        return
      }
      if (terminal && line.trim() === '/stop' && talk.cancel()) return
      work = work.then(async () => {
        if (left) return
        try {
          if ((await talk.take(line)) === 'exit') leave()
        } catch (error) {
          // In a terminal one can try again; a script has to know.
          if (!terminal || !talk.survives(error)) {
            failure = error
            leave()
          }
        }
        if (terminal && !left) lines.prompt()
      })
    })
    await new Promise<void>((resolve) => lines.once('close', resolve))
    await work
    if (failure !== undefined) throw failure
    return !terminal && talk.cancelled ? exits.interrupted : exits.ok
  } finally {
    process.off('SIGINT', onInterrupt)
    lines.close()
    process.stdin.pause()
  }
}
