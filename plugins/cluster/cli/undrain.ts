import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { Changed, findMember } from './member.ts'

export default defineCommand({
  description: 'Let a daemon that was drained take work again.',
  args: {
    daemon: { type: 'positional', required: false, description: 'Name or id of the daemon (default: the one called)' },
    ...clientArgs,
  },
  examples: [['svc cluster undrain web-2', 'it takes work again']],
  async run(args) {
    const { member, changed } = await callDaemon(await connect(args), async (client) => {
      const found = await findMember(client, args.daemon)
      const path = `/api/cluster/members/${encodeURIComponent(found.id)}/undrain`
      return { member: found, changed: await client.call('POST', path, Changed) }
    })
    if (args.json) printJson(changed)
    else print(`${escapeControls(member.name)} takes work again.`)
    return exits.ok
  },
})
