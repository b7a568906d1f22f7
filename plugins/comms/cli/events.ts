import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'

const Event = v.looseObject({
  timestamp: v.string(),
  kind: v.string(),
  source_name: v.string(),
  target_name: v.string(),
  detail: v.string(),
})

export default defineCommand({
  description: 'List messages between agents, agents that came and went, and tasks; the newest last.',
  args: {
    limit: { type: 'string', description: 'How many', default: '20', valueHint: 'number' },
    follow: { type: 'boolean', description: 'Go on with new ones as they come' },
    ...clientArgs,
  },
  examples: [
    ['svc comms events', 'the newest 20'],
    ['svc comms events --follow', 'and what comes'],
  ],
  async run(args) {
    const show = (event: v.InferOutput<typeof Event>): void => (args.json ? printJson(event) : print(lineOf(event)))
    await callDaemon(await connect(args), async (client) => {
      const path = `/api/comms/events?limit=${encodeURIComponent(args.limit)}`
      for (const event of (await client.call('GET', path, v.array(Event))).toReversed()) show(event)
      if (!args.follow) return
      for await (const { data } of client.stream('GET', '/api/comms/events/stream', { timeoutMs: 0 }))
        show(v.parse(Event, data))
    })
    return exits.ok
  },
})

function lineOf({ timestamp, kind, source_name: source, target_name: target, detail }: v.InferOutput<typeof Event>) {
  const who = target === '' ? source : `${source} > ${target}`
  return escapeControls(`${timestamp.slice(0, 19).replace('T', ' ')}  ${kind.padEnd(16)}  ${who}: ${detail}`)
}
