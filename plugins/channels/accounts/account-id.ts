import * as v from 'valibot'

/** The name of an account among those of its channel. */
export const AccountId = v.pipe(
  v.string(),
  v.regex(/^[a-z\d][a-z\d_-]{0,62}$/, 'expected lower-case letters, digits, - and _, such as support'),
)
export const DEFAULT_ACCOUNT = 'default'
