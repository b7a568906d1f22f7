/** A name or address of its own, or one with a port. */
export type NamedHosts = ReadonlySet<string>

/** The hosts that a configuration names: those of its addresses, with their ports, and names that stand alone. */
export function namedHosts(config: Readonly<Record<string, unknown>>): NamedHosts {
  const texts = Object.values(config)
    .flat()
    .filter((value) => typeof value === 'string')
  return new Set(texts.map((text) => placeOf(URL.parse(text)) ?? text.toLowerCase()))
}

export function isNamed(hosts: NamedHosts, address: string | URL): boolean {
  const url = URL.parse(String(address))
  const place = placeOf(url)
  return url !== null && place !== undefined && (hosts.has(place) || hosts.has(url.hostname))
}

/** Host and port; a WebSocket has those of its server. `undefined` for what is no address of a host. */
function placeOf(url: URL | null): string | undefined {
  if (!url || url.hostname === '') return undefined
  const defaultPort = /^(?:https|wss):$/.test(url.protocol) ? '443' : '80'
  return `${url.hostname.toLowerCase()}:${url.port || defaultPort}`
}
