import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'
import { MatrixConfig } from '../matrix/config.ts'

const ROOM = /^(?:#[^\s:]+|![^\s:]+):[^\s/?#]+$/

export const GitterConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The access token of the bot.'))),
  base_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the homeserver that the account of the bot is on.'),
    ),
    'https://gitter.ems.host',
  ),
  rooms: fields.textsThat(
    'Rooms to join: `#org_repo:gitter.im` for the room org/repo.',
    (room) => ROOM.test(room),
    'a list of addresses such as "#org_repo:gitter.im"',
  ),
  auto_join: MatrixConfig.entries.auto_join,
  join_invites_from: MatrixConfig.entries.join_invites_from,
})
export type GitterConfig = v.InferOutput<typeof GitterConfig>
export type Link = ChannelLink<GitterConfig>
