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
} from 'svc/cli'

const Topology = v.looseObject({
  nodes: v.array(v.looseObject({ id: v.string(), name: v.string(), state: v.string(), model: v.string() })),
  edges: v.array(v.object({ from: v.string(), to: v.string(), kind: v.string() })),
})

export default defineCommand({
  description: 'Show the agents, whom each made, and who wrote to whom of late.',
  args: clientArgs,
  examples: [['svc comms topology', 'as a table']],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) => client.call('GET', '/api/comms/topology', Topology))
    if (args.json) printJson(found)
    else print(tableOf(found))
    return exits.ok
  },
})

function tableOf({ nodes, edges }: v.InferOutput<typeof Topology>): string {
  const names = new Map(nodes.map(({ id, name }) => [id, name]))
  const named = (ids: readonly string[]): string => escapeControls(ids.map((id) => names.get(id) ?? id).join(', '))
  return renderTable(
    ['AGENT', 'STATE', 'MADE', 'WRITES WITH'],
    nodes.map(({ id, name, state }) => {
      const made = edges.filter(({ kind, from }) => kind === 'parent_child' && from === id).map(({ to }) => to)
      const peers = edges
        .filter(({ kind, from, to }) => kind === 'peer' && (from === id || to === id))
        .map(({ from, to }) => (from === id ? to : from))
      return [escapeControls(name), state, named(made), named(peers)]
    }),
  )
}
