import { breakMentions } from 'svc/channels'

/** Nobody is called by what an agent writes to everybody, or to everybody who is there. */
export function encodeText(text: string): string {
  return breakMentions(text, /@(?=(?:all|here)\b)/gi)
}
