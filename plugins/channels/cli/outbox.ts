import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  print,
  printJson,
  renderTable,
  shorten,
} from 'svc/cli'
import { channelArgs, channelPath } from './client.ts'

const List = v.looseObject({
  messages: v.array(
    v.looseObject({
      id: v.string(),
      chat_id: v.string(),
      state: v.string(),
      text: v.string(),
      attempts: v.number(),
      error: v.nullable(v.string()),
      created_at: v.string(),
    }),
  ),
})
const Done = v.looseObject({ status: v.string() })

export default defineCommand({
  description: 'List the messages of a channel that could not be sent; send one again, or discard it.',
  args: {
    ...channelArgs,
    retry: { type: 'string', description: 'Send this message again', valueHint: 'id' },
    discard: { type: 'string', description: 'Discard this message', valueHint: 'id' },
    state: {
      type: 'string',
      description: 'Those in another state: pending, sending, sent, discarded',
      valueHint: 'state',
    },
  },
  examples: [
    ['svc channels outbox telegram', 'the dead letters, with the reason'],
    ['svc channels outbox telegram --retry 0f9d1c1e-3f0e-4a3e-9a53-0c8f0b6f9d11', 'sends one again'],
  ],
  async run(args) {
    const { retry, discard } = args
    if (retry !== undefined && discard !== undefined)
      throw new Failure(exits.usage, '--retry and --discard exclude each other', 'give one of them')
    const connection = await connect(args)
    const id = retry ?? discard
    if (id !== undefined) {
      const path = channelPath(args.channel, `outbox/${encodeURIComponent(id)}${retry === undefined ? '' : '/retry'}`)
      const done = await callDaemon(connection, (client) =>
        client.call(retry === undefined ? 'DELETE' : 'POST', path, Done),
      )
      if (args.json) printJson(done)
      else print(retry === undefined ? 'The message is discarded.' : 'The message is sent again.')
      return exits.ok
    }
    const query = args.state === undefined ? '' : `?state=${encodeURIComponent(args.state)}`
    const list = await callDaemon(connection, (client) =>
      client.call('GET', `${channelPath(args.channel, 'outbox')}${query}`, List),
    )
    if (args.json) printJson(list)
    else print(renderList(args.channel, list))
    return exits.ok
  },
})

function renderList(channel: string, { messages }: v.InferOutput<typeof List>): string {
  if (messages.length === 0) return `${channel} has no such messages.`
  const rows = messages.map(({ id, chat_id: chat, state, error, text }) => [
    id,
    escapeControls(chat),
    state,
    escapeControls(shorten(error ?? '', 60)),
    escapeControls(shorten(text, 40)),
  ])
  const hint = `${commandLine(`channels outbox ${channel} --retry <id>`)} sends one again.`
  return `${renderTable(['ID', 'CHAT', 'STATE', 'ERROR', 'TEXT'], rows)}\n${hint}`
}
