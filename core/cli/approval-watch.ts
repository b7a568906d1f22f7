import { createInterface } from 'node:readline'
import { escapeControls } from '../log/text.ts'
import { decide, linesOf, renderChoices, renderDetails, renderQuestion } from './approvals.ts'
import { clientArgs, command } from './command.ts'
import { connect, explain, requireAgent } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { note, print } from './output.ts'
import { renderFailure, toFailure } from './report.ts'
import { ApprovalFeed } from './terminal/approval-feed.ts'
import { paint } from './terminal/view.ts'

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
    const { client } = connection
    const agentId = args.agent === undefined ? undefined : (await requireAgent(client, args.agent)).id
    const answers = process.stdin.isTTY === true && args.json !== true
    const colored = process.stdout.isTTY === true && !process.env['NO_COLOR']
    const lines = answers ? createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' }) : undefined
    return await new Promise<number>((resolve, reject) => {
      /** The one the next letter is for. */
      let asked: string | undefined
      const leave = (end: () => void): void => {
        feed.stop()
        lines?.close()
        process.off('SIGINT', onInterrupt)
        end()
      }
      const onInterrupt = (): void => leave(() => resolve(exits.interrupted))
      const askNext = (): void => {
        const first = feed.waiting[0]
        if (!first || first.id === asked) return
        asked = first.id
        print(`${renderQuestion(first, (text) => paint(colored, 1, text))}${renderChoices(first)}`)
        lines?.prompt()
      }
      const feed = new ApprovalFeed({
        client,
        agentId: () => agentId,
        onAsked(approval) {
          if (args.json) print(JSON.stringify(approval))
          else if (answers) askNext()
          else print(`${renderQuestion(approval, (text) => text)}  svc approval approve ${approval.id.slice(0, 8)}\n`)
        },
        onSettled({ id }) {
          if (!args.json) note(`${id.slice(0, 8)} was answered elsewhere, or expired.`)
          askNext()
        },
        onFailure: (error) => leave(() => reject(error instanceof Failure ? error : explain(error, connection))),
      })
      lines?.on('line', (line) => {
        const one = feed.waiting.find(({ id }) => id === asked)
        const letter = line.trim().toLowerCase()
        if (!one || !/^[ynsd]$/.test(letter)) {
          note(one ? 'y, n or d' : 'Nothing waits for an answer.')
          return
        }
        const work =
          letter === 'd'
            ? renderDetails(client, one.id).then(print)
            : decide(client, letter === 'n' ? 'reject' : 'approve', one.id, letter === 's' ? 'session' : 'once').then(
                ({ answer }) => {
                  feed.settle(one.id)
                  print(`${answer.status}: ${escapeControls(linesOf(one).join(' '))}`)
                  asked = undefined
                  askNext()
                },
              )
        work.catch((error: unknown) => note(renderFailure(toFailure(explain(error, connection)), false)))
      })
      lines?.once('close', onInterrupt)
      process.on('SIGINT', onInterrupt)
      if (answers) note('Waiting for what agents want to do. Ctrl-C leaves.')
      feed.start()
    })
  },
})
