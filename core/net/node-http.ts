/**
 * Node's HTTP. An `import` of `node:http` reads all that it exports, `WebSocket` among it, and so loads undici, HTTP/2
 * and TLS with its root certificates: 25 ms and 10 MB of every start.
 */
export const http = process.getBuiltinModule('node:http')
/** Node's HTTPS, loaded with the first use: TLS and its root certificates take 4 MB. */
export function https() {
  return process.getBuiltinModule('node:https')
}
