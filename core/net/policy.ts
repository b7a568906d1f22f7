import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'
import { classify, inRange, readRange } from './address.ts'
import type { AddressKind, Range } from './address.ts'
import type { OwnAddress } from './own-addresses.ts'

/** Names that lead to a cloud machine's credentials wherever they are resolved. */
const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
])
/**
 * Ports of services that would take a request for commands of their own protocol (the list of the Fetch standard,
 * shortened to what is met).
 */
const CLOSED_PORTS = new Set([
  1, 7, 9, 13, 19, 20, 21, 22, 23, 25, 37, 53, 69, 79, 110, 111, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 540, 554, 587, 601, 636, 873, 993, 995, 2049, 3659, 4045, 5060, 5061, 6000, 6379, 6566, 6665,
  6666, 6667, 6668, 6669, 6679, 6697, 11211,
])

const MAX_KNOWN = 1000

/** Where the daemon itself is reached. Nothing that goes out comes back in, whatever the allow list says. */
export interface OwnListeners {
  /** Ports it listens on now. */
  ports(): ReadonlySet<number>
  /** Names under which others reach it, such as through a proxy in front of it. */
  names(): readonly string[]
  /** Other places that take what comes from this daemon for the daemon itself, such as its database. */
  addresses(): readonly OwnAddress[]
}
const noListeners: OwnListeners = { ports: () => new Set(), names: () => [], addresses: () => [] }

/**
 * Decides where requests may go. Hosts and ranges of the allow list are permitted whatever they are, except metadata.
 */
export class Policy {
  readonly #hosts = new Set<string>()
  readonly #ranges: Range[] = []
  readonly #kinds: ReadonlySet<AddressKind>
  readonly #own: OwnListeners
  /** The same few addresses are asked about at every request, and what an address is never changes. */
  readonly #known = new Map<string, AddressKind>()

  /**
   * `operator` addresses, such as a base URL in the configuration, may be loopback and private without being listed.
   */
  constructor(allow: readonly string[], operator: boolean, own: OwnListeners = noListeners) {
    this.#own = own
    this.#kinds = new Set(operator ? ['public', 'loopback', 'private'] : ['public'])
    for (const entry of allow) {
      const range = readRange(entry.trim())
      if (range) this.#ranges.push(range)
      else this.#hosts.add(canonical(entry.trim()))
    }
  }

  /** Checks all that can be checked without resolving the name. Returns the name or address to connect to. */
  checkUrl(url: URL): string {
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw refusal(`Requests go out over http and https only, not ${url.protocol.slice(0, -1)}`)
    if (url.username !== '' || url.password !== '')
      throw refusal('An address with a user name or password in it is refused')
    const host = this.checkHost(url.hostname, portOf(url))
    if (url.port !== '' && CLOSED_PORTS.has(Number(url.port)) && !this.#hosts.has(host)) {
      throw refusal(`Requests to port ${url.port} are refused: it belongs to another protocol. ${permission(host)}`)
    }
    return host
  }

  /**
   * Checks all that can be checked without resolving the name, for a connection of any protocol. Returns the name or
   * address to connect to.
   */
  checkHost(hostname: string, port: number): string {
    const host = canonical(hostname)
    if (host === '') throw refusal('An address without a host is refused')
    if (METADATA_NAMES.has(host)) throw forbidden(host, 'metadata')
    // A proxy in front of it listens at the usual ports; other services may go by the same name at others.
    if ((isUsualPort(port) || this.isOwnPort(port)) && this.#own.names().some((name) => canonical(name) === host))
      throw itself(host)
    for (const own of this.#own.addresses())
      if (own.port === port && canonical(own.host) === host) throw itself(host, own)
    if (isIP(host) !== 0) this.checkAddress(host, host, port)
    return host
  }

  /** Throws for a name without an address that can only be one of this machine or of a private network. */
  checkUnknown(host: string): void {
    if (/(?:^|\.)(?:localhost|internal|local|lan|intranet|home\.arpa)$/.test(host) && !this.#hosts.has(host))
      throw forbidden(host, 'private')
  }

  /** Whether an address is the daemon's own at a port of this number, so that only both together can be checked. */
  isOwnPort(port: number): boolean {
    return this.#own.ports().has(port) || this.#own.addresses().some((own) => own.port === port)
  }

  /** Throws when a host must not be reached at this address and port. */
  checkAddress(host: string, address: string, port: number): void {
    if (this.#own.ports().has(port) && isThisMachine(address)) throw itself(host)
    for (const own of this.#own.addresses())
      if (own.port === port && leadsTo(address, own.host)) throw itself(host, own)
    const kind = this.#kindOf(address)
    if (this.#kinds.has(kind)) return
    if (kind !== 'metadata' && (this.#hosts.has(host) || this.#ranges.some((range) => inRange(address, range)))) return
    throw forbidden(host, kind)
  }

  #kindOf(address: string): AddressKind {
    let kind = this.#known.get(address)
    if (kind !== undefined) return kind
    kind = classify(address)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(address, kind)
    return kind
  }
}

const isUsualPort = (port: number): boolean => port === 80 || port === 443
export const portOf = (url: URL): number =>
  url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)

/**
 * Whether whoever connects to this address reaches this machine: loopback, no address at all, or that of one of its
 * interfaces.
 */
function isThisMachine(address: string): boolean {
  if (classify(address) === 'loopback') return true
  const unspecified = ['0.0.0.0/8', '::'].some((text) => isInText(address, text))
  if (unspecified) return true
  return Object.values(networkInterfaces())
    .flatMap((rows) => rows ?? [])
    .some((row) => isInText(address, row.address.replace(/%.*$/, '')))
}
/** Whether whoever connects to the address reaches the host, as far as is known without resolving its name. */
function leadsTo(address: string, host: string): boolean {
  const name = canonical(host)
  if (isIP(name) === 0) return name === 'localhost' && isThisMachine(address)
  return isInText(address, name) || (isThisMachine(name) && isThisMachine(address))
}
function isInText(address: string, text: string): boolean {
  const range = readRange(text)
  return range !== undefined && inRange(address, range)
}

/** Lower case, without brackets and without the dot of an absolute name. */
export function canonical(hostname: string): string {
  const name = hostname.toLowerCase()
  // Nearly every name has neither, and is asked about at every request.
  if (!name.startsWith('[') && !name.endsWith('.')) return name
  return name.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

const KINDS = {
  loopback: 'this machine',
  private: 'a private network',
  reserved: 'a reserved address',
  metadata: 'a cloud metadata service',
  public: '',
}

function refusal(message: string): Refusal {
  enforced('ssrf_protection')
  return new Refusal('forbidden', message)
}

function permission(host: string): string {
  return `To permit it, add "${host}" to [outbound] allow in config.toml`
}
function itself(
  host: string,
  { what }: Pick<OwnAddress, 'what'> = { what: 'the daemon itself listens there' },
): Refusal {
  return refusal(`Requests to ${host} are refused: ${what}, and nothing may permit that`)
}

function forbidden(host: string, kind: AddressKind): Refusal {
  return refusal(
    kind === 'metadata'
      ? `Requests to ${host} are refused: it is a cloud metadata service, which is never permitted`
      : `Requests to ${host} are refused: it is ${KINDS[kind]}. ${permission(host)}`,
  )
}
