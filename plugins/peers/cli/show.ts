import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson, renderFacts } from 'svc/cli'
import { pathOf, Peer, peerArgs, shortTime } from './peer.ts'

export default defineCommand({
  description: 'Show a daemon that is linked with this one, or was: its key, and its agents.',
  args: peerArgs,
  examples: [['svc peer show svc-0123456789abcdef', 'compare the key with what it shows itself']],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) => client.call('GET', pathOf(args.peer), Peer))
    if (args.json) printJson(found)
    else
      print(
        renderFacts([
          ['node', escapeControls(found.node_id)],
          ['name', escapeControls(found.node_name)],
          ['state', found.state],
          ['address', escapeControls(found.address)],
          ['encrypted', found.encrypted ? 'yes' : 'no'],
          ['key', found.fingerprint],
          ['key since', shortTime(found.pinned_at)],
          ['linked since', shortTime(found.connected_at) || 'not linked'],
          ['last seen', shortTime(found.last_seen)],
          ['agents', escapeControls(found.agents.map(({ name }) => name).join(', ')) || 'none'],
        ]),
      )
    return exits.ok
  },
})
