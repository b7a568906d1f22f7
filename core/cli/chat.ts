import { createInterface } from 'node:readline/promises'
import { clientArgs, command } from './command.ts'
import { ask, connect, requireAgent } from './connect.ts'
import { Conversation } from './conversation.ts'
import { exits, Failure } from './failure.ts'
import { requireSession } from './sessions.ts'
import { PlainView } from './terminal/view.ts'
import { commandLine } from '../process/command-name.ts'

export default command({
  description:
    'Talk to an agent. In a terminal a pasted text is one message and Markdown is drawn; from a pipe each line is a message, and answers come as they are. /help lists the commands.',
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
      description: `Go on in this conversation: its number in ${commandLine('session list')}, its label or its id`,
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
    if (args.message?.trim() === '') throw new Failure(exits.usage, '--message is empty')
    const connection = await connect(args)
    const { agent, session } = await ask(connection, async (client) => {
      const found = await requireAgent(client, args.agent)
      return {
        agent: found,
        session: args.session === undefined ? undefined : await requireSession(client, args.session, found.id),
      }
    })
    const json = args.json === true
    const parts = { connection, agent, session, json }
    const colored = !process.env['NO_COLOR']
    if (json || process.stdout.isTTY !== true || process.env['TERM'] === 'dumb') {
      const view = new PlainView(colored && process.stdout.isTTY === true && process.env['TERM'] !== 'dumb')
      const talk = new Conversation({ ...parts, view, letters: false })
      return args.message === undefined ? await converse(talk) : await once(talk, args.message)
    }
    const { Screen } = await import('./terminal/screen.ts')
    const { TerminalView } = await import('./terminal/markdown-view.ts')
    const screen = new Screen(process.stdout)
    const typed = args.message === undefined && process.stdin.isTTY === true
    const talk = new Conversation({ ...parts, view: new TerminalView(screen, colored), letters: typed })
    if (args.message !== undefined) return await once(talk, args.message)
    if (!typed) return await converse(talk)
    const { converseInTerminal } = await import('./terminal/interactive.ts')
    return await converseInTerminal(talk, screen, colored)
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

/** Messages go one after the other; a line that comes during an answer waits, but an answer to a question does not. */
async function converse(talk: Conversation): Promise<number> {
  const lines = createInterface({ input: process.stdin, terminal: false })
  let failure: unknown
  let work = Promise.resolve()
  // Not the end of the input: what was read before that is still sent.
  let left = false
  const leave = (): void => {
    left = true
    lines.close()
  }
  const onInterrupt = (): void => {
    // The first one ends the answer, the next one the program.
    if (!talk.cancel()) leave()
  }
  process.on('SIGINT', onInterrupt)
  try {
    lines.on('line', (line) => {
      if (talk.answersApproval(line, 0)) return
      work = work.then(async () => {
        if (left) return
        try {
          if ((await talk.take(line)) === 'exit') leave()
        } catch (error) {
          // In a terminal one can try again; a script has to know.
          failure = error
          leave()
        }
      })
    })
    await new Promise<void>((resolve) => lines.once('close', resolve))
    await work
    if (failure !== undefined) throw failure
    return talk.cancelled ? exits.interrupted : exits.ok
  } finally {
    process.off('SIGINT', onInterrupt)
    lines.close()
    process.stdin.pause()
  }
}
