/** Text of another node on one line, without what moves a cursor or the direction of reading. */
export function plainText(text: string, maxChars: number): string {
  return text
    .slice(0, maxChars)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .trim()
}
