/**
 * JSON in which tokens of messages are texts: they are numbers of 64 bits, of which JavaScript keeps 53, so that
 * different messages would have the same id. A quotation mark that ends a name is never part of a text: there it is
 * escaped.
 */
export function withExactTokens(body: Uint8Array): Uint8Array {
  const text = new TextDecoder().decode(body)
  return new TextEncoder().encode(text.replace(/("message_token"\s*:\s*)(\d+)/g, '$1"$2"'))
}
