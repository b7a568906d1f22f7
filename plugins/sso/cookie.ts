import { parseCookie, serializeCookie } from 'cookie-es'

/**
 * The one cookie there is: it binds a sign-in to the browser that began it, for ten minutes at most, and opens nothing
 * by itself.  Decision: the token of a sign-in is no cookie. Cookies do not know ports, so on a machine of one's own
 * every other local server would be sent it, and a browser adds it to whatever a foreign page asks for, which SameSite
 * and an Origin check have to make good again. The page keeps the token in the `sessionStorage` of
 * its tab and sends it as a bearer: a cross-site request or a WebSocket opened by another page carries nothing, by
 * construction. A script that got into the page could use either; the policy (no inline script, connections to this
 * origin only) stands against that, the token is gone with the tab, and signing out ends it here.
 */
export interface Cookies {
  readonly name: string
  /**
   * Lax: it comes back when the provider sends the browser here with a link, and not with what other pages embed or
   * post.
   */
  set(value: string, sameSite: 'lax' | 'strict', maxAgeSecs: number): string
  clear(): string
  read(header: string | undefined): string | undefined
}

export function cookiesFor(redirectUrl: string): Cookies {
  const isSecure = redirectUrl.startsWith('https:')
  // The prefix keeps neighbouring subdomains from planting a cookie of this name; browsers take it with https only.
  const name = isSecure ? '__Host-svc-sign-in' : 'svc-sign-in'
  const scope = isSecure ? { path: '/', secure: true } : { path: '/api/auth' }
  const write = (value: string, sameSite: 'lax' | 'strict', maxAge: number): string =>
    serializeCookie(name, value, { ...scope, httpOnly: true, sameSite, maxAge })
  return {
    name,
    set: write,
    clear: () => write('', 'strict', 0),
    read(header) {
      const value = parseCookie(header ?? '', { allowMultiple: true, decode: (text) => text })[name]
      // Of two cookies with one name, one was planted, and they cannot be told apart.
      return typeof value === 'string' ? value : undefined
    },
  }
}
