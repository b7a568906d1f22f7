import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { pathOf, peerArgs } from './peer.ts'

const Pong = v.looseObject({ latency_ms: v.number(), uptime_secs: v.number() })

export default defineCommand({
  description: 'Ask a linked daemon whether it is there.',
  args: peerArgs,
  examples: [['svc peer ping bob', 'how long it takes to answer']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', `${pathOf(args.peer)}/ping`, Pong),
    )
    if (args.json) printJson(answer)
    else print(`It answered in ${answer.latency_ms} ms and runs for ${answer.uptime_secs} s.`)
    return exits.ok
  },
})
