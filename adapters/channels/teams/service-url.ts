import { trimSlashes } from 'svc/channels'
import type { TeamsConfig } from './config.ts'

/** Hosts of the Bot Connector of Teams, of the public cloud and of the government one that signs with the same keys. */
const HOSTS: ReadonlySet<string> = new Set(['smba.trafficmanager.net', 'smba.infra.gcc.teams.microsoft.com'])

const MAX_CHARS = 1000

/** Whether the access token may be sent to this address, which comes with a message. */
export function isServiceUrl(
  url: string,
  { base_url: base, service_hosts: more }: Pick<TeamsConfig, 'base_url' | 'service_hosts'>,
): boolean {
  if (url.length > MAX_CHARS) return false
  const { protocol, hostname, origin, username } = URL.parse(url) ?? {}
  if (origin === undefined || hostname === undefined || username !== '') return false
  if (origin === new URL(base).origin) return true
  return protocol === 'https:' && origin === `https://${hostname}` && (HOSTS.has(hostname) || more.includes(hostname))
}

/** Whether two addresses of the service are the same: slashes at the end and case are not always. */
export function isSameService(one: unknown, other: string): boolean {
  return typeof one === 'string' && trimSlashes(one).toLowerCase() === trimSlashes(other).toLowerCase()
}
