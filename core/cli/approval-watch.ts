import { commandLine } from '../process/command-name.ts'
import { lettersOf, renderQuestion } from './approvals.ts'
import type { Approval } from './approvals.ts'
import { clientArgs, command } from './command.ts'
import { connect, explain, requireAgent } from './connect.ts'
import type { Connection } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { print } from './output.ts'
import { renderFailure, toFailure } from './report.ts'
import { ApprovalPrompt } from './terminal/approval-prompt.ts'
import { PlainView } from './terminal/view.ts'

export default command({
  description:
    'Wait for what agents want to do and ask about each in turn: y lets it be done once, s for the rest of its conversation where that is possible, n does not, d shows details. Without a terminal, or with --json, it only tells.',
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
    if (args.json) return await tell(connection, agentId, (approval) => print(JSON.stringify(approval)))
    if (process.stdin.isTTY === true && process.stdout.isTTY === true && process.env['TERM'] !== 'dumb')
      return await answer(connection, agentId)
    return await tell(connection, agentId, (approval) => {
      const line = commandLine(`approval approve ${approval.id.slice(0, 8)}`)
      print(`${renderQuestion(approval, (text) => text)}  ${line}\n`)
    })
  },
})

async function answer(connection: Connection, agentId: string | undefined): Promise<number> {
  const { Screen } = await import('./terminal/screen.ts')
  const { TerminalView } = await import('./terminal/markdown-view.ts')
  const { readLines } = await import('./terminal/interactive.ts')
  const colored = !process.env['NO_COLOR']
  const screen = new Screen(process.stdout)
  const view = new TerminalView(screen, colored)
  let failure: unknown
  let leave = (): void => undefined
  const prompt = new ApprovalPrompt({
    client: connection.client,
    view,
    agentId: () => agentId,
    onRefused: (error) => view.note(renderFailure(toFailure(explain(error, connection)), false)),
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
      view.note('Waiting for what agents want to do. Ctrl-C leaves.')
      prompt.start()
    },
    onLine(text, begunAt) {
      if (prompt.takes(text, begunAt)) return
      view.note(prompt.asked ? `${lettersOf(prompt.asked)}; d shows details.` : 'Nothing waits for an answer.')
    },
    onInterrupt: () => leave(),
  })
  prompt.drop()
  view.endAnswer()
  if (failure !== undefined) throw lost(failure, connection)
  return exits.interrupted
}

/** Until Ctrl-C. */
async function tell(
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
      onLost: (error) => leave(() => reject(lost(error, connection))),
      onAnswered: () => undefined,
      tell: show,
    })
    process.on('SIGINT', onInterrupt)
    prompt.start()
  })
}

function lost(error: unknown, connection: Connection): Error {
  const explained = error instanceof Failure ? error : explain(error, connection)
  return explained instanceof Error ? explained : new Error(String(explained))
}
