import { classify } from 'svc/internal'
import { Refusal } from 'svc/sdk'

function isLoopback({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return host === 'localhost' || host.endsWith('.localhost') || classify(host) === 'loopback'
}

/**
 * Whether what is sent there is encrypted or stays on this machine. Whether this machine may be reached at all is for
 * the guard of outgoing requests: only the configuration file can permit it.
 */
export function isSecureUrl(text: string): boolean {
  const url = URL.parse(text)
  if (!url || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))
}

/** The address of an agent in the one form in which it is stored and compared. Throws `invalid_request`. */
export function normalizeUrl(text: string): string {
  const url = URL.parse(text.trim())
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Refusal('invalid_request', 'url: expected the web address of an agent, such as https://example.com')
  if (url.username !== '' || url.password !== '')
    throw new Refusal('invalid_request', 'url: an address must not hold a name or a password')
  if (!isSecureUrl(url.href))
    throw new Refusal('invalid_request', 'url: expected https; http is accepted for this machine only')
  url.hash = ''
  url.search = ''
  return url.href.replace(/\/+$/, '')
}

/** Where the card of an agent may be, the current path of the protocol before the one of earlier versions. */
export function cardAddresses(url: string): readonly string[] {
  if (url.endsWith('.json')) return [url]
  return [`${url}/.well-known/agent-card.json`, `${url}/.well-known/agent.json`]
}
