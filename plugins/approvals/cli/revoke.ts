import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, escapeControls, exits, print, printJson } from 'svc/cli'
import { requireStandingApproval } from './standing.ts'

export default defineCommand({
  description: 'Revoke a standing approval: the next call needs an approval again.',
  args: {
    id: { type: 'positional', required: true, description: 'Id of the standing approval, or the beginning of it' },
    ...clientArgs,
  },
  examples: [['svc approval revoke 0f6a9c1e', 'by the beginning of its id']],
  async run(args) {
    const { grant, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireStandingApproval(client, args.id)
      return { grant: found, answer: await client.call('DELETE', `/api/approvals/grants/${found.id}`, v.unknown()) }
    })
    if (args.json) printJson(answer)
    else
      print(
        `revoked ${grant.id}: ${escapeControls(grant.agent_name)} asks again before ${grant.tool_name} ` +
          `(${escapeControls(grant.covers)})`,
      )
    return exits.ok
  },
})
