import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, omitUndefined, print, printJson } from 'svc/cli'

const Created = v.looseObject({ status: v.string() })

export default defineCommand({
  description: 'Let an agent answer the messages that match. Without a condition it answers everybody.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    channel: { type: 'string', description: 'Name of the channel', valueHint: 'name' },
    account: { type: 'string', description: 'Account of the channel', valueHint: 'id' },
    guild: { type: 'string', description: 'Server, workspace or team', valueHint: 'id' },
    chat: { type: 'string', description: 'Chat or room', valueHint: 'id' },
    thread: { type: 'string', description: 'Thread or topic of the chat', valueHint: 'id' },
    peer: { type: 'string', description: 'Sender', valueHint: 'id' },
    roles: { type: 'string', description: 'Roles of the sender, one is enough; separated by commas', valueHint: 'ids' },
    ...clientArgs,
  },
  examples: [
    ['svc channels bindings add support --channel telegram', 'everybody on one channel'],
    ['svc channels bindings add ops --channel discord --guild 41771983 --roles 4000,4001', 'roles of a server'],
  ],
  async run(args) {
    const roles = args.roles
      ?.split(',')
      .map((role) => role.trim())
      .filter((role) => role !== '')
    const match_rule = omitUndefined({
      channel: args.channel,
      account_id: args.account,
      guild_id: args.guild,
      channel_id: args.chat,
      thread_id: args.thread,
      peer_id: args.peer,
      roles,
    })
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/bindings', Created, { body: { agent: args.agent, match_rule } }),
    )
    if (args.json) printJson(answer)
    else print(`${args.agent} answers what matches.`)
    return exits.ok
  },
})
