import { writeFile } from 'node:fs/promises'
import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, note, print, renderTime } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { countOf, requireSession, sessionArgs, Shown, speakerOf } from './client.ts'
import type { Message, Session } from './client.ts'

const PAGE = 500

export default defineCommand({
  description: 'Write a whole conversation as Markdown to read, or as JSON with every message and its tools.',
  args: {
    ...sessionArgs,
    format: { type: 'enum', options: ['md', 'json'], default: 'md', description: 'Markdown or JSON' },
    output: { type: 'string', alias: 'o', valueHint: 'file', description: 'New file instead of standard output' },
    ...clientArgs,
  },
  examples: [
    ['svc session export 2', 'the second one of `svc session list`, as Markdown'],
    ['svc session export taxes --format json --output taxes.json', 'with every tool, into a file'],
  ],
  async run(args) {
    const { session, messages } = await callDaemon(await connect(args), async (client) => {
      const found = await requireSession(client, args.session, args.agent)
      return { session: found, messages: await readAll(client, found.id) }
    })
    const text =
      args.format === 'json' || args.json
        ? JSON.stringify({ ...session, message_count: messages.length, messages }, null, 2)
        : toMarkdown(session, messages)
    if (args.output === undefined) print(text)
    else {
      await writeNew(args.output, `${text}\n`)
      note(`${countOf(messages.length)} in ${args.output}`)
    }
    return exits.ok
  },
})

/** All messages, the oldest first. */
async function readAll(client: DaemonClient, id: string): Promise<readonly Message[]> {
  const pages: (readonly Message[])[] = []
  let before = ''
  for (;;) {
    const { messages } = await client.call('GET', `/api/sessions/${id}?limit=${PAGE}${before}`, Shown)
    pages.unshift(messages)
    if (messages.length < PAGE) return pages.flat()
    before = `&before=${encodeURIComponent(messages[0]?.id ?? '')}`
  }
}

function toMarkdown(session: Session, messages: readonly Message[]): string {
  const agent = session.agent_name ?? 'agent'
  const head = `# ${session.title === '' ? `Conversation with ${agent}` : session.title}\n\n${agent}, session ${session.id}`
  const parts = messages.map((message) => {
    const { content, created_at: at, tools, mark, failed, error } = message
    return [
      `## ${speakerOf(message, agent)}, ${renderTime(at)}${mark === undefined ? '' : ` (${mark})`}`,
      ...(content === '' ? [] : [content]),
      ...tools.map((tool) => `*used \`${tool.name}\`${tool.is_error ? ', which failed' : ''}*`),
      ...(failed ? [`*failed: ${error?.message ?? 'it was not answered'}*`] : []),
    ].join('\n\n')
  })
  return [head, ...parts].join('\n\n')
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    throw new Failure(
      exits.failed,
      code === 'EEXIST' ? `${file} is there already` : `${file} cannot be written (${code})`,
      code === 'EEXIST' ? 'remove it or name another file' : 'name a file in a folder that can be written to',
      { cause: error },
    )
  }
}
