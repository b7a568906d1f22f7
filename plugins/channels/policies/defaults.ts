import type { AccountSettings } from '../accounts/settings.ts'

const USER_MESSAGES_PER_MINUTE = 20
const ACCOUNT_MESSAGES_PER_MINUTE = 600
const THREAD_FOLLOW_SECS = 300

/** The settings of an account with the defaults for what was not set. */
export function withDefaults(settings: AccountSettings) {
  return {
    ...settings,
    dm_policy: settings.dm_policy ?? 'respond',
    group_policy: settings.group_policy ?? 'mention_only',
    rate_limit_per_user: settings.rate_limit_per_user ?? USER_MESSAGES_PER_MINUTE,
    rate_limit_per_minute: settings.rate_limit_per_minute ?? ACCOUNT_MESSAGES_PER_MINUTE,
    streaming: settings.streaming ?? true,
    threading: settings.threading ?? true,
    thread_follow_secs: settings.thread_follow_secs ?? THREAD_FOLLOW_SECS,
    commands: settings.commands ?? 'all',
  }
}
