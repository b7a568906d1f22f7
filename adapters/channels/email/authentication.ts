interface Header {
  readonly key: string
  readonly value: string
}

/**
 * Whether the operator's mail server verified that the mail is from this address. Only its topmost header counts: those
 * below may be of the sender.
 */
export function isAuthentic(headers: readonly Header[], address: string, server: string | undefined): boolean {
  if (server === undefined || !hasOneSender(headers)) return false
  const newest = headers.find(({ key }) => key === 'authentication-results')
  const [name = '', ...results] = withoutComments(newest?.value ?? '').split(';')
  if (name.trim().split(/\s/, 1)[0]?.toLowerCase() !== server.toLowerCase()) return false
  const domain = address.split('@').at(-1) ?? ''
  return results.some((result) => isPassedPolicy(result, domain) || isAlignedSignature(result, domain))
}

/** Of several senders, the server may have verified another one than the one that is read. */
function hasOneSender(headers: readonly Header[]): boolean {
  const senders = headers.filter(({ key }) => key === 'from')
  return senders.every(({ value }) => ONE_ADDRESS.test(withoutComments(value))) && senders.length <= 1
}
const ONE_ADDRESS = /^[^<>,;]*<[^<>\s]+>\s*$|^\s*[^<>,;\s]+\s*$/

function isPassedPolicy(result: string, domain: string): boolean {
  if (!/^\s*dmarc\s*=\s*pass\b/i.test(result)) return false
  const verified = /\sheader\.from\s*=\s*(\S+)/i.exec(result)?.[1]?.toLowerCase()
  return verified === undefined || verified.split('@').at(-1) === domain
}

/** A signature of the domain of the sender, or of one above it. */
function isAlignedSignature(result: string, domain: string): boolean {
  if (!/^\s*dkim\s*=\s*pass\b/i.test(result)) return false
  const signer = /\sheader\.(?:d\s*=\s*|i\s*=\s*\S*@)([^\s;@]+)/i.exec(result)?.[1]?.toLowerCase() ?? ''
  return signer.includes('.') && (domain === signer || domain.endsWith(`.${signer}`))
}

/** Without comments and quoted texts: the sender chose those, such as the name before the `@` of an address. */
function withoutComments(text: string): string {
  let [depth, plain, isQuoted] = [0, '', false]
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '\\' && (isQuoted || depth > 0)) at++
    else if (sign === '"' && depth === 0) {
      isQuoted = !isQuoted
      // What stands on both sides of it stays apart.
      plain += '_'
    } else if (isQuoted) continue
    else if (sign === '(') depth++
    else if (sign === ')') depth = Math.max(0, depth - 1)
    else if (depth === 0) plain += sign
  }
  return plain
}
