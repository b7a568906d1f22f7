import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { Changed, findMember } from './member.ts'

export default defineCommand({
  description:
    'Let a daemon take nothing more over: a load balancer sends it nothing new, what runs ends there or goes on elsewhere.',
  args: {
    daemon: { type: 'positional', required: false, description: 'Name or id of the daemon (default: the one called)' },
    stop: { type: 'boolean', description: 'Stop it as well, once its requests have ended', default: false },
    ...clientArgs,
  },
  examples: [
    ['svc cluster drain', 'the daemon of this home, which stays'],
    ['svc cluster drain web-2 --stop', 'another one, which ends'],
  ],
  async run(args) {
    const { member, changed } = await callDaemon(await connect(args), async (client) => {
      const found = await findMember(client, args.daemon)
      const path = `/api/cluster/members/${encodeURIComponent(found.id)}/drain`
      return { member: found, changed: await client.call('POST', path, Changed, { body: { stop: args.stop } }) }
    })
    if (args.json) printJson(changed)
    else print(`${escapeControls(member.name)} takes nothing more over${args.stop ? ' and stops' : ''}.`)
    return exits.ok
  },
})
