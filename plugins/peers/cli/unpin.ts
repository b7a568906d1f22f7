import * as v from 'valibot'
import { callDaemon, commandLine, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { pathOf, peerArgs } from './peer.ts'

const Unpinned = v.looseObject({ status: v.literal('unpinned'), node_id: v.string() })

export default defineCommand({
  description: 'Forget the key of a daemon: the key it shows next is the one it must have from then on.',
  args: peerArgs,
  examples: [['svc peer unpin bob', 'after bob was set up anew']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', `${pathOf(args.peer)}/pin`, Unpinned),
    )
    if (args.json) printJson(answer)
    else
      print(
        `The key of ${escapeControls(answer.node_id)} is forgotten. Compare the next one: ${commandLine('peer list')}`,
      )
    return exits.ok
  },
})
