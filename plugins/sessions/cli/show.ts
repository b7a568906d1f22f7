import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  print,
  printJson,
  renderTime,
} from 'svc/cli'
import { countOf, requireSession, sessionArgs, Shown, speakerOf } from './client.ts'

export default defineCommand({
  description: 'Show the messages of a conversation.',
  args: {
    ...sessionArgs,
    limit: { type: 'string', valueHint: 'number', description: 'Newest messages to show, at most 1000 (default: 100)' },
    ...clientArgs,
  },
  examples: [
    ['svc session show 2', 'the second one of `svc session list`'],
    ['svc session show taxes --agent scout', 'by its label'],
    ['svc session show 2 --json', 'every message with its tools, for a script'],
  ],
  async run(args) {
    const limit = args.limit ?? '100'
    if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > 1000)
      throw new Failure(exits.usage, `--limit: expected 1 to 1000, found "${limit}"`)
    const { session, shown } = await callDaemon(await connect(args), async (client) => {
      const found = await requireSession(client, args.session, args.agent)
      return {
        session: found,
        shown: await client.call('GET', `/api/sessions/${found.id}?limit=${Number(limit)}`, Shown),
      }
    })
    if (args.json) {
      printJson(shown)
      return exits.ok
    }
    const title = session.title === '' ? '' : `${escapeControls(session.title)}, `
    print(`${title}${countOf(shown.message_count)}, ${session.id}${shown.active ? ', active' : ''}`)
    const agent = session.agent_name ?? 'agent'
    // Older ones that are not shown would have to be counted as well.
    const isWhole = shown.messages.length < Number(limit)
    for (const [index, message] of shown.messages.entries()) {
      const { content, created_at: at, tools, mark, failed, error } = message
      print(
        `\n${isWhole ? `[${index + 1}] ` : ''}${escapeControls(speakerOf(message, agent))}, ${renderTime(at)}${mark === undefined ? '' : ` (${mark})`}:`,
      )
      if (content !== '') print(escapeControls(content, true))
      for (const tool of tools) print(`[${escapeControls(tool.name)}${tool.is_error ? ' failed' : ''}]`)
      if (failed) print(`(failed: ${escapeControls(error?.message ?? 'it was not answered')})`)
    }
    return exits.ok
  },
})
