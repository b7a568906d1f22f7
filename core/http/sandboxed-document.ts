import { reply } from './route.ts'
import type { Reply } from './route.ts'

/**
 * The policy of a document that anybody may have written: nothing in it runs, is loaded or is sent, it has no origin,
 * and only pages of this daemon may show it, in a frame.
 */
export const sandboxPolicy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; " +
  "frame-ancestors 'self'"

/** An answer with HTML that may be hostile, for a frame of a page of this daemon. */
export function sandboxedDocument(html: string): Reply {
  return reply(html, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': sandboxPolicy })
}
