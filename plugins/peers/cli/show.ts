import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
  renderTime,
} from 'svc/cli'
import { pathOf, Peer, peerArgs } from './peer.ts'

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
          ['key since', renderTime(found.pinned_at, 'second')],
          ['linked since', renderTime(found.connected_at, 'second') || 'not linked'],
          ['last seen', renderTime(found.last_seen, 'second')],
          ['agents', escapeControls(found.agents.map(({ name }) => name).join(', ')) || 'none'],
        ]),
      )
    return exits.ok
  },
})
