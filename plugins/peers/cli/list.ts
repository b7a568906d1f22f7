import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'
import { describeMissing, Peer, Status } from './peer.ts'

export default defineCommand({
  description: 'List the daemons that are linked with this one or were, and how this one is reached.',
  args: clientArgs,
  examples: [
    ['svc peer list', 'who is linked'],
    ["svc peer list --json | jq -r '.peers[].node_id'", 'ids for a script'],
  ],
  async run(args) {
    const { network, peers } = await callDaemon(await connect(args), async (client) => ({
      network: await client.call('GET', '/api/network/status', Status),
      peers: (await client.call('GET', '/api/peers', v.looseObject({ peers: v.array(Peer) }))).peers,
    }))
    if (args.json) printJson({ network, peers })
    else {
      print(describeNetwork(network))
      for (const missing of describeMissing(network)) print(missing)
      if (peers.length > 0) print(renderPeers(peers))
    }
    return exits.ok
  },
})

function describeNetwork({
  enabled,
  problem,
  node_id: id,
  listen_address: at,
  identity_fingerprint: key,
}: v.InferOutput<typeof Status>) {
  if (!enabled) return 'Networking is off: write enabled = true under [network] into config.toml.'
  if (problem !== null) return `Networking is off: ${problem}`
  return `This is node ${id ?? ''}, ${at === null ? 'which does not listen' : `at ${at}`}, with the key ${key ?? ''}.`
}
function renderPeers(peers: readonly v.InferOutput<typeof Peer>[]): string {
  return renderTable(
    ['NODE', 'NAME', 'STATE', 'ADDRESS', 'AGENTS', 'LAST SEEN', 'KEY'],
    peers.map((each) => [
      escapeControls(each.node_id),
      escapeControls(each.node_name),
      each.state === 'connected' && !each.encrypted ? 'connected, not encrypted' : each.state,
      escapeControls(each.address),
      String(each.agents.length),
      renderTime(each.last_seen, 'second'),
      each.fingerprint,
    ]),
  )
}
