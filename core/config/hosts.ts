import { isIPv6 } from './listen.ts'

/** An address, or a block of them such as `10.0.0.0/8`. */
export function isRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.trim().split('/')
  const widest = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1
  return widest > 0 && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= widest))
}
/** The name or address of a host, without a port. */
export function isHost(text: string): boolean {
  const host = text.trim()
  return (
    isIPv6(host) ||
    /^\[[\da-f:.]+\]$/i.test(host) ||
    (/^[\p{L}\p{N}._-]+$/u.test(host) && URL.canParse(`http://${host}/`))
  )
}
/** As `isHost`, with or without a port. */
export function isHostAndPort(text: string): boolean {
  const [, host, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(text.trim()) ?? []
  return isHost(text) || (host !== undefined && Number(port) <= 65_535 && isHost(host))
}
/** What browsers send as Origin: scheme, host and port, and nothing behind them. */
export function isOrigin(text: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]+$/i.test(text)
}

/** In the form every program prints: four numbers. */
function isIPv4(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) && text.split('.').every((part) => Number(part) < 256)
}
