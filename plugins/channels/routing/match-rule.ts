import * as v from 'valibot'
import { line } from 'svc/sdk'

const text = (description: string) => v.optional(v.pipe(line(512), v.description(description)))
/** What has to be equal in a message; what is absent matches everything. */
export const MatchRule = v.strictObject({
  channel: text('Name of the channel, such as telegram'),
  account_id: text('Account of the channel'),
  peer_id: text('Id of the sender'),
  guild_id: text('Id of the server, workspace or team, where the platform has them'),
  channel_id: text('Id of the chat'),
  thread_id: text('Id of the thread or topic in the chat'),
  roles: v.optional(v.pipe(v.array(line(128)), v.maxLength(100), v.description('Roles of the sender; one is enough'))),
})
export type MatchRule = v.InferOutput<typeof MatchRule>
