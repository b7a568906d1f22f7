import { createInterface } from 'node:readline/promises'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  exits,
  Failure,
  loadTerminal,
  PlainView,
  print,
  renderDuration,
  terminalMode,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import { Conversation } from './conversation.ts'
import { requireSession } from '../../sessions/cli/client.ts'

export default defineCommand({
  description:
    'Talk to an agent. In a terminal a pasted text is one message and Markdown is drawn; from a pipe each line is a ' +
    'message, and answers come as they are. /help lists the commands.',
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
    ['svc chat', 'conversation to the agent "assistant"'],
    ['svc chat --session 2', 'go on with an earlier conversation'],
    ['svc chat scout -m "What is new?"', 'one question, one answer'],
    ['echo "Hello" | svc chat', 'from a script'],
    ['svc chat --json -m Hello', 'every event as a JSON line'],
  ],
  async run(args) {
    if (args.message?.trim() === '') throw new Failure(exits.usage, '--message is empty')
    const connection = await connect(args)
    const { agent, session } = await callDaemon(connection, async (client) => {
      const found = await requireAgent(client, args.agent)
      return {
        agent: found,
        session: args.session === undefined ? undefined : await requireSession(client, args.session, found.id),
      }
    })
    const json = args.json === true
    const target = { connection, agent, session, json }
    const { canDraw, canType, colored } = terminalMode()
    if (json || !canDraw) {
      const options = { ...target, view: new PlainView(colored), hasPrompt: false }
      if (args.message === undefined) return await readPipe(new Conversation(options))
      // The reply to the only message is what the command prints.
      const conversation = new Conversation(json ? options : { ...options, onReply: print })
      return await sendOne(conversation, args.message)
    }
    const { Screen, TerminalView } = await loadTerminal()
    const screen = new Screen(process.stdout)
    const hasPrompt = args.message === undefined && canType
    const fold = (secs: number): string =>
      `(thought for ${renderDuration(secs)}${hasPrompt ? '; /thoughts shows it' : ''})`
    const conversation = new Conversation({ ...target, view: new TerminalView(screen, colored, fold), hasPrompt })
    if (args.message !== undefined) return await sendOne(conversation, args.message)
    if (!hasPrompt) return await readPipe(conversation)
    const { converseInTerminal } = await import('./interactive.ts')
    return await converseInTerminal({ conversation, connection, screen, colored })
  },
})

/** Sends the message of `--message`, which may be a command of the conversation. */
async function sendOne(conversation: Conversation, message: string): Promise<number> {
  const onInterrupt = (): void => {
    if (!conversation.cancel()) process.exit(exits.interrupted)
  }
  process.on('SIGINT', onInterrupt)
  try {
    await conversation.take(message)
    return conversation.cancelled ? exits.interrupted : exits.ok
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

/** Messages go one after the other; a line that comes during an answer waits, but an answer to a question does not. */
async function readPipe(conversation: Conversation): Promise<number> {
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
    if (!conversation.cancel()) leave()
  }
  process.on('SIGINT', onInterrupt)
  try {
    lines.on('line', (line) => {
      if (conversation.answersApproval(line, 0)) return
      work = work.then(async () => {
        if (left) return
        try {
          if ((await conversation.take(line)) === 'exit') leave()
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
    return conversation.cancelled ? exits.interrupted : exits.ok
  } finally {
    process.off('SIGINT', onInterrupt)
    lines.close()
    process.stdin.pause()
  }
}
