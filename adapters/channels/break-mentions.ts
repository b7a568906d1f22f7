/**
 * Keeps a text from calling people, whatever format it has: `mentions` matches the signs that begin a mention, all of
 * them, and what follows them is set apart by a space without width.
 */
export function breakMentions(text: string, mentions: RegExp): string {
  return text.replaceAll(mentions, '$&\u200b')
}
