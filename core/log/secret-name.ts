/**
 * Whether a key is usually that of something that must not be shown. Names of environment variables, limits and
 * switches are no secrets.
 */
export function namesSecret(name: string): boolean {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase()
  if (/[_-](env|var|set|count|path|file|url|name|id|prefix)$/.test(words)) return false
  return (
    /(^|[_.-])(api_?key|key|token|secret|password|passwd|passphrase|credentials?|authorization|cookie|bearer|dsn)s?$/.test(
      words,
    ) &&
    !/(^|[_.-])(in(put)?|out(put)?|max|min|total|cached(_input)?|thinking|prompt|completion|used|reasoning)_tokens$/.test(
      words,
    ) &&
    words !== 'tokens' &&
    words !== 'keys' &&
    words !== 'key'
  )
}
