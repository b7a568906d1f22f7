import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'

const RUNS = 'whoever sets it runs a program of their choice on this machine'

export const KeybaseConfig = v.object({
  username: v.pipe(
    v.string(),
    v.regex(/^[a-z0-9_]{2,16}$/i, 'a name of 2 to 16 letters, digits and _'),
    v.toLowerCase(),
    v.description('The name of the bot on Keybase.'),
  ),
  token: fields.secretText('A paper key of the bot. Without it, the account that is signed in in `folder` is used.'),
  folder: fileOnly(
    RUNS,
    v.pipe(
      v.string(),
      v.regex(/^\/(?!.*\.\.)/, 'an absolute path'),
      v.description('Where the program keeps its files, for this account alone.'),
    ),
  ),
  program: v.optional(
    fileOnly(
      RUNS,
      v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description('The program of Keybase, by name or path.')),
    ),
    'keybase',
  ),
  teams: fields.texts('Names of teams whose channels are read; all that the bot is in when empty.'),
})
export type KeybaseConfig = v.InferOutput<typeof KeybaseConfig>
export type Link = ChannelLink<KeybaseConfig>
