import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { Approval, renderDetails, requireApproval } from './approval.ts'

export default defineCommand({
  description: 'Show one approval whole: who asks for what, and exactly what would be done.',
  args: {
    id: { type: 'positional', required: true, description: 'Id of the approval, or the beginning of it' },
    ...clientArgs,
  },
  examples: [
    ['svc approval show 0f6a9c1e', 'by the beginning of its id'],
    ['svc approval show 0f6a9c1e --json | jq .payload', 'the arguments alone'],
  ],
  async run(args) {
    await callDaemon(await connect(args), async (client) => {
      const { id } = await requireApproval(client, args.id)
      if (args.json) printJson(await client.call('GET', `/api/approvals/${id}`, Approval))
      else print(await renderDetails(client, id))
    })
    return exits.ok
  },
})
