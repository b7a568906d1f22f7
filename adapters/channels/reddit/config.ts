import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

const Secret = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description(description)))
const Address = (description: string, fallback: string) =>
  v.optional(
    v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
    fallback,
  )
/** Names that examples use. Reddit blocks clients that do not say who they are. */
const PLACEHOLDERS = /\bu\/(?:your[-_]?(?:own[-_]?)?(?:user)?[-_]?name|user[-_]?name|example|kemitche)\b/i

export const RedditConfig = v.object({
  token: Secret('The secret of the app.'),
  client_id: v.pipe(
    v.string(),
    v.regex(/^[\w-]{1,100}$/, 'a client id'),
    v.description('The client id of the app, which stands below its name.'),
  ),
  username: v.pipe(
    v.string(),
    v.regex(/^[\w-]{3,20}$/, 'the name of an account, without u/'),
    v.description('The name of the account.'),
  ),
  password: Secret('The password of the account.'),
  user_agent: v.pipe(
    v.string(),
    v.regex(/^[\w.-]+:[\w.-]+:[\w.-]+ \(by \/?u\/[\w-]{3,20}\)$/, 'such as server:my-helper:v1 (by /u/your-own-name)'),
    v.check((text) => !PLACEHOLDERS.test(text), 'a user agent with your own name instead of that of the example'),
    v.description('What Reddit is told of the bot, with the name of who runs it: platform:app:version (by /u/name).'),
  ),
  subreddits: fields.textsThat(
    'Names of communities of which every comment is read; mentions and replies are read everywhere.',
    (name) => /^(\/?r\/)?\w{2,21}$/.test(name),
    'a list of names of communities',
  ),
  subject: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(100),
      v.description('The subject of private messages that answer none.'),
    ),
    'svc',
  ),
  base_url: Address('The address of the API.', 'https://oauth.reddit.com'),
  auth_url: Address('The address that signing in goes to.', 'https://www.reddit.com'),
  poll_seconds: fields.integer('Seconds between two looks for new messages.', 30, 5, 120),
})
export type RedditConfig = v.InferOutput<typeof RedditConfig>
