interface Header {
  readonly key: string
  readonly value: string
}

/**
 * Whether the operator's mail server verified that the mail is from this address. Only its topmost header counts: those
 * below may be of the sender.
 */
export function isAuthentic(headers: readonly Header[], address: string, server: string | undefined): boolean {
  if (server === undefined) return false
  const newest = headers.find(({ key }) => key === 'authentication-results')
  const [name = '', ...results] = withoutComments(newest?.value ?? '').split(';')
  if (name.trim().split(/\s/, 1)[0]?.toLowerCase() !== server.toLowerCase()) return false
  const domain = address.split('@').at(-1) ?? ''
  return results.some((result) => /^\s*dmarc\s*=\s*pass\b/i.test(result) || isAlignedSignature(result, domain))
}

/** A signature of the domain of the sender, or of one above it. */
function isAlignedSignature(result: string, domain: string): boolean {
  if (!/^\s*dkim\s*=\s*pass\b/i.test(result)) return false
  const signer = /\bheader\.(?:d\s*=\s*|i\s*=\s*\S*@)([^\s;@]+)/i.exec(result)?.[1]?.toLowerCase() ?? ''
  return signer.includes('.') && (domain === signer || domain.endsWith(`.${signer}`))
}

function withoutComments(text: string): string {
  let [depth, plain] = [0, '']
  for (const sign of text) {
    if (sign === '(') depth++
    else if (sign === ')') depth = Math.max(0, depth - 1)
    else if (depth === 0) plain += sign
  }
  return plain
}
