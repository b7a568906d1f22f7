import * as v from 'valibot'
import { line } from 'svc/sdk'
import { patternProblem } from '../policies/linear-pattern.ts'

const names = (description: string) =>
  v.optional(v.pipe(v.array(line(512)), v.maxLength(10_000), v.description(description)), [])
const count = (description: string, max: number) =>
  v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(max), v.description(description)))
const choice = <const T extends readonly string[]>(description: string, options: T) =>
  v.exactOptional(v.pipe(v.picklist(options), v.description(description)))

const Pattern = v.pipe(
  v.string(),
  v.nonEmpty(),
  v.maxLength(256),
  v.regex(/^\P{Cc}+$/u, 'expected a pattern without control characters'),
  v.check(isPattern, 'expected a regular expression'),
  v.check(
    (text) => patternProblem(text) === undefined,
    ({ input }) => `"${input}" uses ${patternProblem(input) ?? ''}, which could stop the daemon: write it without`,
  ),
)

const DELIVER_TARGET = /^([a-z\d_]{1,64})(?:\/([a-z\d_-]{1,63}))?:(\S.*)$/
/** The chat that `deliver_target` names. */
export function readDeliverTarget(text: string): { channel: string; account: string | undefined; to: string } {
  const [, channel = '', account, to = ''] = DELIVER_TARGET.exec(text) ?? []
  return { channel, account, to }
}

/**
 * The keys of an account that are the same on every platform. A key that is not set stays absent, so that the default
 * is told from a choice.
 */
export const AccountSettings = v.object({
  agent_name: v.exactOptional(v.pipe(line(128), v.description('Agent that answers when no binding says otherwise.'))),
  allowed_users: names('Who may write to the bot: ids or names of the platform; "*" is everybody. Empty: nobody.'),
  operators: names('People who may approve what agents do and change the model, in chat: ids or names, never "*".'),
  allowed_chats: names('Rooms, servers or channels the bot answers in. Empty: all it is in.'),
  dm_policy: choice('Direct messages: answer everybody, only allowed people, or nobody.', [
    'respond',
    'allowed_only',
    'ignore',
  ]),
  group_policy: choice('Groups: answer all messages, mentions, commands, or nothing.', [
    'all',
    'mention_only',
    'commands_only',
    'ignore',
  ]),
  mention_patterns: v.optional(
    v.pipe(v.array(Pattern), v.maxLength(32), v.description('Regular expressions that count as a mention of the bot.')),
    [],
  ),
  rate_limit_per_user: count('Messages a person may send in a minute; 0 for no limit.', 10_000),
  rate_limit_per_minute: count('Messages of everybody together in a minute; 0 for no limit.', 100_000),
  threading: v.exactOptional(v.pipe(v.boolean(), v.description('Answers in a thread where the platform has them.'))),
  thread_follow_secs: count(
    'Seconds for which an agent goes on answering in a thread without being mentioned again; 0: mention it each time.',
    86_400,
  ),
  output_format: choice('Markup of the answers, instead of that of the platform.', ['native', 'markdown', 'plain']),
  streaming: v.exactOptional(
    v.pipe(v.boolean(), v.description('Shows answers while they are written, where messages can be edited.')),
  ),
  deliver_target: v.exactOptional(
    v.pipe(
      line(600),
      v.regex(DELIVER_TARGET, 'expected channel:chat or channel/account:chat, such as telegram:4711'),
      v.description('Chat that answers go to instead of that of the message: channel:chat or channel/account:chat.'),
    ),
  ),
  deliver_only: v.exactOptional(
    v.pipe(v.boolean(), v.description('Messages go to deliver_target as they are, without an agent.')),
  ),
  commands: v.exactOptional(
    v.pipe(
      v.union(
        [v.picklist(['all', 'off']), v.pipe(v.array(line(32)), v.maxLength(100))],
        'expected "all", "off" or a list of at most 100 commands, each of at most 32 characters',
      ),
      v.description('Commands such as /help in chat: "all", "off", or a list of their names.'),
    ),
  ),
})
export type AccountSettings = v.InferOutput<typeof AccountSettings>

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'iu').source !== ''
  } catch {
    return false
  }
}
