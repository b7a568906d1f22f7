import { BlockList, isIP, isIPv6 } from 'node:net'

/** Addresses of proxies whose forwarding headers are believed: single addresses and CIDR blocks. */
export type TrustedProxies = (address: string) => boolean

export function trustedProxies(entries: readonly string[]): TrustedProxies {
  if (entries.length === 0) return () => false
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) throw new Error(`trusted proxy "${entry}" is neither an address nor a block`)
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** `::ffff:127.0.0.1` and `127.0.0.1` are one client; a zone (`%eth0`) is no part of the identity. */
export function foldAddress(address: string): string {
  if (!address.includes(':')) return address
  const lower = address.toLowerCase()
  const bare = lower.includes('%') ? lower.slice(0, lower.indexOf('%')) : lower
  return bare.startsWith('::ffff:') && bare.includes('.') ? bare.slice(7) : bare
}

/** What the limiter counts by: the IPv4 address, or the /64 an IPv6 customer is given. */
export function limiterKey(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}

/** The socket's peer, or behind trusted proxies the rightmost hop that is not one of them. */
export function clientAddress(peer: string, forwardedFor: string | undefined, trusted: TrustedProxies): string {
  let address = foldAddress(peer)
  if (forwardedFor === undefined || !trusted(address)) return address
  for (const hop of forwardedFor.split(',').toReversed()) {
    const candidate = foldAddress(
      hop
        .trim()
        .replace(/^\[(.*)\](?::\d+)?$/, '$1')
        .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1'),
    )
    // A hop that is no address ends the chain: what stands left of it was not written by a proxy we know.
    if (isIP(candidate) === 0) return address
    address = candidate
    if (!trusted(candidate)) return candidate
  }
  return address
}
