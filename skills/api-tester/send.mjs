import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** Bytes of a body that are read. */
const MAX_BODY = 1_000_000

/** A connection to the host of an address, through the proxy of this program where it has one. */
async function dial(url, signal) {
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const proxy = process.env.HTTPS_PROXY ?? process.env.HTTP_PROXY
  const socket = proxy
    ? await tunnel(new URL(proxy), `${url.hostname}:${port}`, signal)
    : connect({ host, port, signal })
  if (url.protocol !== 'https:') return socket
  return connectTls({ socket, host, ALPNProtocols: ['http/1.1'], ...(/[a-z]/i.test(host) && { servername: host }) })
}
/** Throws what the proxy says of a host that it does not connect to. */
async function tunnel(proxy, authority, signal) {
  const request = http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: authority, signal })
  request.end()
  const [{ statusCode }, socket, head] = await once(request, 'connect')
  if (statusCode === 200) {
    if (head.length > 0) socket.unshift(head)
    return socket
  }
  let why = head.toString()
  for await (const part of socket) why += part
  throw new Error(`${authority} was not reached: ${why.replace(/^svc: /, '').trim() || statusCode}`)
}

/** One request and its whole answer: status, headers, text, and milliseconds from the connection to its end. */
export async function send({ url, method, headers, body, timeoutMs }) {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const socket = await dial(url, signal)
    const begun = performance.now()
    const request = (url.protocol === 'https:' ? https : http).request({
      createConnection: () => socket,
      method,
      path: url.pathname + url.search,
      headers: { host: url.host, connection: 'close', ...headers },
      signal,
    })
    request.end(body)
    const [answer] = await once(request, 'response')
    const parts = []
    let bytes = 0
    for await (const part of answer) {
      parts.push(part)
      bytes += part.length
      if (bytes > MAX_BODY) break
    }
    const ms = Math.round(performance.now() - begun)
    const text = Buffer.concat(parts).subarray(0, MAX_BODY).toString('utf8')
    return { status: answer.statusCode, headers: answer.headers, text, ms, isWhole: bytes <= MAX_BODY }
  } catch (error) {
    if (signal.aborted)
      throw new Error(`${url.host} did not answer within ${timeoutMs / 1000} seconds`, { cause: error })
    throw error.code === undefined
      ? error
      : new Error(`${url.host} was not reached: ${error.code} ${error.message}`, { cause: error })
  }
}
