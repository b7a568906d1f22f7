const secretWord = [
  'api_?key|key|token|secret|password|passwd|passphrase',
  'credentials?|authorization|cookie|bearer|dsn',
].join('|')
const secretName = new RegExp(`(^|[_.-])(${secretWord})s?$`)
const counterWord = [
  'in(put)?|out(put)?|max|min|total|cached(_input)?',
  'thinking|prompt|completion|used|reasoning',
].join('|')
const counterName = new RegExp(`(^|[_.-])(${counterWord})_tokens$`)

/** Whether a key by this name usually holds a secret. Names of environment variables, limits and switches do not. */
export function namesSecret(name: string): boolean {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase()
  if (/[_-](env|var|set|count|path|file|url|name|id|prefix)$/.test(words)) return false
  return secretName.test(words) && !counterName.test(words) && !['tokens', 'keys', 'key'].includes(words)
}
