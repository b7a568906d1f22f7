export interface ListenAddr {
  /** Without brackets. */
  readonly host: string
  readonly port: number
}

/**
 * `host:port`, `[::1]:port`, `:port` for every interface, or a port alone for this machine; `undefined` when it is none
 * of them.
 */
export function findListenAddr(text: string): ListenAddr | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text.trim()) ?? /^()()(\d{1,5})$/.exec(text.trim())
  if (!match) return undefined
  const port = Number(match[3])
  if (port > 65_535) return undefined
  if (match[1]) return isIPv6(match[1]) ? { host: match[1], port } : undefined
  if (match[2]) return { host: match[2], port }
  return { host: text.trim().startsWith(':') ? '0.0.0.0' : '127.0.0.1', port }
}
export function isListenAddr(text: string): boolean {
  return findListenAddr(text) !== undefined
}
/** The parts of an address that was checked before. Throws a plain error when it was not. */
export function parseListenAddr(text: string): ListenAddr {
  const found = findListenAddr(text)
  if (!found) throw new Error(`"${text}" is not an address to listen on: expected host:port`)
  return found
}
/** The opposite of `parseListenAddr`: brackets around IPv6. */
export function toListenAddr({ host, port }: ListenAddr): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}
/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** The parser of URLs knows every form of it. */
export function isIPv6(host: string): boolean {
  return host.includes(':') && URL.canParse(`http://[${host}]/`)
}
