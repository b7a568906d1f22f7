import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentArgs, agentPath, describeAgent, ExternalAgent } from './external.ts'

export default defineCommand({
  description: 'Trust an agent on another system as its card is now. With another card it waits for you again.',
  args: agentArgs,
  examples: [['svc a2a approve translator', 'shows the card that you trust']],
  async run(args) {
    const agent = await callDaemon(await connect(args), async (client) => {
      const path = agentPath(args.agent)
      const { fingerprint, id } = await client.call('GET', path, ExternalAgent)
      const body = fingerprint === null ? {} : { fingerprint }
      return client.call('POST', `${agentPath(id)}/approve`, ExternalAgent, { body })
    })
    if (args.json) printJson(agent)
    else print(describeAgent(agent))
    return exits.ok
  },
})
