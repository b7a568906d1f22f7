import {
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  exits,
  explainError,
  Failure,
  loadTerminal,
  PlainView,
  print,
  renderFailure,
  terminalMode,
  toFailure,
} from 'svc/cli'
import type { Connection } from 'svc/cli'
import { lettersOf, renderQuestion } from './approval.ts'
import type { Approval } from './approval.ts'
import { requireAgent } from '../../agents/cli/client.ts'
import { ApprovalPrompt } from './prompt.ts'

export default defineCommand({
  description:
    'Wait for approvals and ask about each in turn: y approves it once, s for the rest of its ' +
    'conversation where that is possible, n does not, d shows details. ' +
    'Without a terminal, or with --json, it only lists them.',
  args: {
    agent: { type: 'positional', required: false, description: 'Name or id of an agent (default: all of them)' },
    ...clientArgs,
  },
  examples: [
    ['svc approval watch', 'answer as they come; Ctrl-C leaves'],
    ['svc approval watch scout', 'of one agent'],
    ['svc approval watch --json | while read -r one; do …; done', 'one JSON line each'],
  ],
  async run(args) {
    const connection = await connect(args)
    const agentId = args.agent === undefined ? undefined : (await requireAgent(connection.client, args.agent)).id
    if (args.json) return await printEach(connection, agentId, (approval) => print(JSON.stringify(approval)))
    if (terminalMode().canType) return await askEach(connection, agentId)
    return await printEach(connection, agentId, (approval) => {
      const line = commandLine(`approval approve ${approval.id.slice(0, 8)}`)
      print(`${renderQuestion(approval, (text) => text)}  ${line}\n`)
    })
  },
})

async function askEach(connection: Connection, agentId: string | undefined): Promise<number> {
  const { readLines, Screen, TerminalView } = await loadTerminal()
  const { colored } = terminalMode()
  const screen = new Screen(process.stdout)
  const view = new TerminalView(screen, colored)
  let failure: unknown
  let leave = (): void => undefined
  const prompt = new ApprovalPrompt({
    client: connection.client,
    view,
    agentId: () => agentId,
    onRefused: (error) => view.note(renderFailure(toFailure(explainError(error, connection)), false)),
    onLost(error) {
      failure = error
      leave()
    },
    onAnswered: () => view.status(undefined),
  })
  await readLines({
    screen,
    colored,
    onOpen(end) {
      leave = end
      view.note('Waiting for approvals. Ctrl-C leaves.')
      prompt.start()
    },
    onLine(text, begunAt) {
      if (prompt.takes(text, begunAt)) return
      view.note(prompt.current ? `${lettersOf(prompt.current)}; d shows details.` : 'Nothing waits for an answer.')
    },
    onInterrupt: () => leave(),
  })
  prompt.drop()
  view.endAnswer()
  if (failure !== undefined) throw toError(failure, connection)
  return exits.interrupted
}

/** Runs until Ctrl-C. */
async function printEach(
  connection: Connection,
  agentId: string | undefined,
  show: (approval: Approval) => void,
): Promise<number> {
  return await new Promise<number>((resolve, reject) => {
    const leave = (end: () => void): void => {
      prompt.drop()
      process.off('SIGINT', onInterrupt)
      end()
    }
    const onInterrupt = (): void => leave(() => resolve(exits.interrupted))
    const prompt = new ApprovalPrompt({
      client: connection.client,
      view: new PlainView(false),
      agentId: () => agentId,
      onRefused: () => undefined,
      onLost: (error) => leave(() => reject(toError(error, connection))),
      onAnswered: () => undefined,
      notify: show,
    })
    process.on('SIGINT', onInterrupt)
    prompt.start()
  })
}

function toError(error: unknown, connection: Connection): Error {
  const explained = error instanceof Failure ? error : explainError(error, connection)
  return explained instanceof Error ? explained : new Error(String(explained))
}
