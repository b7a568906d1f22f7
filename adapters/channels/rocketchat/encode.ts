/** Nobody is called by what an agent writes to everybody, or to everybody who is there. */
export function encodeText(text: string): string {
  return text.replaceAll(/@(?=(?:all|here)\b)/gi, '@\u200B')
}
