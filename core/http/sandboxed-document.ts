import { reply } from './route.ts'
import type { Reply } from './route.ts'

/**
 * The policy of a document that anybody may have written: nothing in it runs, is loaded or is sent, it has no origin,
 * and only pages of this daemon may show it, in a frame.
 */
export const sandboxPolicy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; " +
  "frame-ancestors 'self'"

/**
 * The policy of a file of a page that is not trusted: its scripts run, and they have no origin, no storage, no windows and
 * no requests. Only pages of this daemon may show it, in a frame.
 */
export const framedPolicy =
  "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

/** An answer with HTML that may be hostile, for a frame of a page of this daemon. */
export function sandboxedDocument(html: string): Reply {
  return reply(html, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': sandboxPolicy })
}

/**
 * No policy of a browser forbids WebRTC, which reaches every machine. A document in a frame runs the scripts of these files
 * only, so each takes it away before anything else.
 */
const withoutWebRtc = new TextEncoder().encode('delete self.RTCPeerConnection;delete self.webkitRTCPeerConnection;')

/** An answer with a file of such a page. A document without an origin loads its modules as a foreign one does. */
export function framedFile(bytes: Uint8Array, contentType: string): Reply {
  const isScript = /^(?:text|application)\/(?:x-)?(?:java|ecma|j|live)script\b/.test(contentType)
  return reply(isScript ? Buffer.concat([withoutWebRtc, bytes]) : bytes, {
    'content-type': contentType,
    'cache-control': 'no-cache',
    'content-security-policy': framedPolicy,
    'access-control-allow-origin': 'null',
  })
}
