import { BlockList, isIP } from 'node:net'
import { Refusal } from '../errors/error.ts'

export interface OriginRules {
  /** The address listened on. */
  readonly host: string
  /** The port listened on; absent while there is none, such as for a request that comes without a socket. */
  readonly port: number | undefined
  readonly keySet: boolean
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Host headers these rules let through already; they come with every request. */
  readonly accepted: Set<string>
}
export interface OriginFacts {
  readonly method: string
  readonly upgrade: boolean
  header(name: string): string | undefined
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether a name or address means this machine only. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  const family = isIP(name)
  return family !== 0 && loopback.check(name, family === 6 ? 'ipv6' : 'ipv4')
}

/** Ports that development servers of web pages use: their pages may call a daemon that asks for no key. */
const developmentPorts: ReadonlySet<number> = new Set([3000, 8080])

interface Authority {
  /** Lower-case, an IPv6 address with its brackets. */
  readonly name: string
  readonly port: number | undefined
}
/** A host with or without a port; `undefined` when it is not a host at all. */
function parseAuthority(text: string): Authority | undefined {
  const [, name, port] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i.exec(text) ?? []
  return name === undefined
    ? undefined
    : { name: name.toLowerCase(), port: port === undefined ? undefined : Number(port) }
}
/**
 * Whether an entry of `http.allowed_hosts` names this host; one without a port stands for every port, because a proxy
 * has its own.
 */
function names(entry: string, { name, port }: Authority): boolean {
  const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const own = parseAuthority(entry)
  return own?.port === undefined ? bare(entry) === bare(name) : bare(own.name) === bare(name) && own.port === port
}

/**
 * Without a key the address bar is the only proof that a page is ours, so neither a rebound name nor another port of
 * this machine must reach us: the Host must be a loopback name or the bound address with the port listened on, or a
 * configured name. With a key the key is the protection.
 */
function checkHost(rules: OriginRules, header: string): void {
  const authority = parseAuthority(header)
  if (authority === undefined) throw new Refusal('invalid_request', 'The Host header is not one host name')
  if (rules.keySet || rules.allowedHosts.some((entry) => names(entry, authority))) return
  const bare = authority.name.replace(/^\[(.*)\]$/, '$1')
  // Browsers leave out only the port of the scheme; a client that sends none is no page of another port.
  const isOurPort = rules.port === undefined || authority.port === undefined || authority.port === rules.port
  if (isOurPort && (isLoopback(bare) || bare === rules.host.toLowerCase())) return
  // Bound to every address: an address as Host cannot be a rebound name, and behind a port mapping neither it nor the
  // port need be ours.
  if ((rules.host === '0.0.0.0' || rules.host === '::') && (isIP(bare) !== 0 || isLoopback(bare))) return
  throw new Refusal(
    'forbidden',
    `The Host ${authority.name}${authority.port === undefined ? '' : `:${authority.port}`} is not served; ` +
      'add it to http.allowed_hosts',
  )
}

function allowed(rules: OriginRules, origin: string, host: string): boolean {
  if (rules.allowedOrigins.includes(origin)) return true
  if (!/^https?:\/\//.test(origin)) return false
  const authority = origin.slice(origin.indexOf('//') + 2)
  // Host is trustworthy here: it was checked, or a key protects the answer.
  if (authority.toLowerCase() === host.toLowerCase()) return true
  const { name, port } = parseAuthority(authority) ?? {}
  if (rules.keySet || name === undefined || !isLoopback(name)) return false
  const shown = port ?? (origin.startsWith('https:') ? 443 : 80)
  return rules.port === undefined || shown === rules.port || developmentPorts.has(shown)
}

/**
 * Checks Host and Origin. Returns the CORS headers the answer must carry, as a flat list; throws `forbidden` for a
 * foreign page that wants to change something, to open a WebSocket, or (without a key) to embed anything of ours.
 * `crossSite`: another site may send people here, and still no page of it reads the answer.
 */
export function checkOrigin(
  rules: OriginRules,
  request: OriginFacts,
  crossSite = false,
): readonly string[] | undefined {
  const host = request.header('host')
  if (host === undefined || host === '') throw new Refusal('invalid_request', 'The Host header is missing')
  if (!rules.accepted.has(host)) {
    checkHost(rules, host)
    // A client that makes up names cannot make this grow.
    if (rules.accepted.size < 100) rules.accepted.add(host)
  }
  if (crossSite) return ['Vary', 'Origin']
  const origin = request.header('origin')
  const reads = request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS'
  if (origin === undefined) {
    // A request without Origin that a foreign page caused (an image, a form of an old browser) still says so here.
    if (
      request.header('sec-fetch-site') === 'cross-site' &&
      (!reads || (!rules.keySet && request.header('sec-fetch-mode') !== 'navigate'))
    ) {
      throw new Refusal('forbidden', 'Requests from other sites are not accepted')
    }
    return undefined
  }
  if (allowed(rules, origin, host)) {
    return [
      'Access-Control-Allow-Origin',
      origin,
      'Vary',
      'Origin',
      'Access-Control-Expose-Headers',
      'x-request-id, retry-after, idempotent-replayed, x-turn-id',
    ]
  }
  if (!reads || request.upgrade)
    throw new Refusal('forbidden', 'This Origin is not accepted; add it to http.allowed_origins')
  return ['Vary', 'Origin']
}

/** The further headers of the answer to a preflight that `checkOrigin` let through with an allowed origin. */
export function preflight(request: OriginFacts, methods: string): readonly string[] {
  const requested = request.header('access-control-request-headers')
  const allowed =
    requested !== undefined && /^[a-z0-9!#$%&'*+.^_`|~, -]{1,1000}$/i.test(requested)
      ? requested
      : 'authorization, content-type'
  const answer = [
    'Access-Control-Allow-Methods',
    methods,
    'Access-Control-Allow-Headers',
    allowed,
    'Access-Control-Max-Age',
    '600',
  ]
  if (request.header('access-control-request-private-network') === 'true')
    answer.push('Access-Control-Allow-Private-Network', 'true')
  return answer
}
