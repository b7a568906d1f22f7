import { Refusal } from 'svc/sdk'
import type { Fetch, PluginContext } from 'svc/sdk'
import { FROM_FILE } from '../servers/spec.ts'
import type { ServerConfig } from '../servers/spec.ts'

export type NetworkDeps = Pick<PluginContext<object, {}, {}>, 'admit' | 'fetch' | 'operator'>

/**
 * The network for one server. The address that the file names may be private. Any other address, such as those that the
 * server names for its logins, is chosen by the server: it goes the guarded way, and over https.
 */
export function networkOf(
  { admit, fetch, operator }: NetworkDeps,
  { name, origin, url: own }: Pick<ServerConfig, 'name' | 'origin' | 'url'>,
): Fetch {
  const { origin: ownOrigin } = new URL(own ?? 'about:blank')
  return async (address, request) => {
    const url = new URL(address)
    if (url.origin !== ownOrigin) {
      // The guarded way refuses loopback addresses that the operator did not allow.
      if (url.protocol !== 'https:' && !isLoopback(url.hostname))
        throw new Refusal('forbidden', `The MCP server "${name}" names ${url.origin}, which is not an https address`)
      return await fetch(url, request)
    }
    const mayBePrivate = origin === FROM_FILE && operator !== undefined && !(await isAdmitted(admit, url))
    return await (mayBePrivate ? operator.fetch(url, request) : fetch(url, request))
  }
}

async function isAdmitted(admit: NetworkDeps['admit'], url: URL): Promise<boolean> {
  try {
    await admit(url)
    return true
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}

/** Of the hostname of a URL, which writes addresses in one way. */
export const isLoopback = (hostname: string): boolean => /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/.test(hostname)
