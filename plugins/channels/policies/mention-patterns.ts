import type { Logger } from 'svc/sdk'
import type { Account } from '../accounts/account.ts'

type Settings = Account['settings']
type Matches = (text: string) => boolean

/** A mention stands near the begin of a message. */
const MAX_CHARS = 1_000

/** Whether a message matches one of the patterns that count as a mention. */
export class MentionPatterns {
  readonly #compiled = new WeakMap<Settings, Promise<readonly Matches[]>>()
  readonly #log: Logger
  constructor(log: Logger) {
    this.#log = log
  }

  async match(settings: Settings, text: string): Promise<boolean> {
    if (settings.mention_patterns.length === 0) return false
    let compiled = this.#compiled.get(settings)
    if (!compiled) {
      compiled = Promise.all(settings.mention_patterns.map((pattern) => compile(pattern, this.#log)))
      this.#compiled.set(settings, compiled)
    }
    const start = text.slice(0, MAX_CHARS)
    return (await compiled).some((matches) => matches(start))
  }
}

/** The time of RE2 grows with the text only, so that no text a stranger writes stops the daemon. */
async function compile(pattern: string, log: Logger): Promise<Matches> {
  const { RE2JS } = await import('re2js')
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern), RE2JS.CASE_INSENSITIVE)
    return (text) => compiled.matcher(text).find()
  } catch (error) {
    log.warn(`mention_patterns: "${pattern}" matches nothing, because RE2 cannot read it`, error)
    return () => false
  }
}
