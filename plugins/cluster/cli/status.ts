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
import { Cluster } from './member.ts'
import type { Member } from './member.ts'

export default defineCommand({
  description: 'List the daemons that share the database: their state, what they work on, and how they differ.',
  args: clientArgs,
  examples: [
    ['svc cluster status', 'who is there'],
    ["svc cluster status --json | jq -r '.members[].address'", 'addresses for a script'],
  ],
  async run(args) {
    const cluster = await callDaemon(await connect(args), (client) =>
      client.call('GET', '/api/cluster', Cluster, { timeoutMs: 10_000 }),
    )
    if (args.json) printJson(cluster)
    else {
      print(renderMembers(cluster.members))
      if (!cluster.shared) print('Other daemons can join on a PostgreSQL database only: see database_url.')
      for (const { name, problems } of cluster.members)
        for (const problem of problems) print(escapeControls(`${name}: ${problem}`))
      for (const { name, differences } of cluster.members)
        if (differences.length > 0) print(escapeControls(`${name} differs from this one in ${differences.join(', ')}`))
    }
    return exits.ok
  },
})

function renderMembers(members: readonly Member[]): string {
  return renderTable(
    ['NAME', 'ID', 'STATE', 'ADDRESS', 'VERSION', 'SEEN', 'OWNS'],
    members.map((member) => [
      escapeControls(member.self ? `${member.name} (this one)` : member.name),
      member.id.slice(0, 8),
      member.state,
      escapeControls(member.address ?? ''),
      member.version,
      `${member.seen_secs} s ago`,
      Object.entries(member.owned)
        .map(([what, count]) => `${count} ${what}`)
        .join(', '),
    ]),
  )
}
