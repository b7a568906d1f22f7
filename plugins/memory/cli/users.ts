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
import { limitArg, queryOf } from './memory.ts'

const Users = v.looseObject({
  users: v.array(v.looseObject({ user_id: v.string(), count: v.number(), newest_at: v.string() })),
  total: v.number(),
})

export default defineCommand({
  description: 'Show for whom memories are kept, and how many.',
  args: { limit: limitArg, ...clientArgs },
  examples: [['svc memory users', 'their ids, for --user of other commands']],
  async run(args) {
    const path = `/api/memory/users?${queryOf({ limit: args.limit })}`
    const found = await callDaemon(await connect(args), (client) => client.call('GET', path, Users))
    if (args.json) printJson(found)
    else if (found.users.length === 0) print('Nothing is kept for anybody but you, the owner of the daemon.')
    else {
      const rows = found.users.map((user) => [
        escapeControls(user.user_id),
        String(user.count),
        renderTime(user.newest_at),
      ])
      print(`${renderTable(['USER', 'MEMORIES', 'NEWEST'], rows)}\n${found.users.length} of ${found.total}`)
    }
    return exits.ok
  },
})
