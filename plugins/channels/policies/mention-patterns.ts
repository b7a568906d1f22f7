import type { Account } from '../accounts/account.ts'

type Settings = Account['settings']
type Matches = (text: string) => boolean

/** A mention stands near the begin of a message. */
const MAX_CHARS = 1_000

/** Whether a message matches one of the patterns that count as a mention. */
export class MentionPatterns {
  readonly #compiled = new WeakMap<Settings, Promise<readonly Matches[]>>()

  async match(settings: Settings, text: string): Promise<boolean> {
    if (settings.mention_patterns.length === 0) return false
    let compiled = this.#compiled.get(settings)
    if (!compiled) {
      compiled = Promise.all(settings.mention_patterns.map(compile))
      this.#compiled.set(settings, compiled)
    }
    const start = text.slice(0, MAX_CHARS)
    return (await compiled).some((matches) => matches(start))
  }
}

/** The time of RE2 grows with the text only, so that no text a stranger writes stops the daemon. */
async function compile(pattern: string): Promise<Matches> {
  const { RE2JS } = await import('re2js')
  try {
    const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE)
    return (text) => compiled.matcher(text).find()
  } catch {
    // RE2 has no look-around and no back references.
    const compiled = new RegExp(pattern, 'iu')
    return (text) => compiled.test(text)
  }
}
