import { Refusal } from '../errors/error.ts'

/**
 * Host and port of a connection as an HTTP address, which the rules are about. Odd ways to write a host are read as
 * everywhere else.
 */
export function targetOf(host: string, port: number): URL {
  const url = URL.parse(`http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}/`)
  if (!url || url.port !== '' || url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '')
    throw new Refusal('invalid_request', `"${host}" is not a host to connect to; write a name or an address`)
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Refusal('invalid_request', `${port} is not a port; write a number between 1 and 65535`)
  url.port = String(port)
  return url
}

/** The same for the address of a WebSocket. */
export function targetOfWebSocket(address: string | URL): URL {
  const url = URL.parse(address)
  if (url?.protocol !== 'ws:' && url?.protocol !== 'wss:')
    throw new Refusal('invalid_request', 'A WebSocket needs an address that begins with wss:// or ws://')
  const target = new URL(url)
  target.protocol = url.protocol === 'wss:' ? 'https:' : 'http:'
  return target
}
