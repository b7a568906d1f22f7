import * as v from 'valibot'
import { secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))

export const MatrixConfig = v.pipe(
  v.object({
    token: v.optional(secretText('The access token of the account.')),
    user: v.optional(
      v.pipe(v.string(), v.minLength(1), v.maxLength(255), v.description('The name of the account, to sign in with.')),
    ),
    password: v.optional(secretText('The password of the account, in place of a token.')),
    base_url: v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the homeserver.'),
    ),
    auto_join: v.optional(
      v.pipe(
        v.picklist(['never', 'listed', 'always']),
        v.description('Which invitations are accepted: none, those of `join_invites_from`, or all.'),
      ),
      'listed',
    ),
    join_invites_from: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[@!:]\S+$/, 'a user (@…), a room (!…) or a server (:example.org)'))),
        v.description('Users (`@ada:example.org`), rooms (`!id:example.org`) and servers (`:example.org`).'),
      ),
      [],
    ),
  }),
  v.check(
    ({ token, user, password }) => token !== undefined || (user !== undefined && password !== undefined),
    'needs token, or user and password',
  ),
)
export type MatrixConfig = v.InferOutput<typeof MatrixConfig>
