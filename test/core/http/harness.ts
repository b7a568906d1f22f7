import { connect } from 'node:net'
import { createConsola } from 'consola'
import { onTestFinished } from 'vitest'
import * as v from 'valibot'
import type { Idempotency } from '../../../core/http/idempotency.ts'
import { createHttp } from '../../../core/http/server.ts'
import type { AuthFailure, HttpServer, HttpSettings } from '../../../core/http/server.ts'
import { defineRoute } from '../../../core/http/route.ts'
import type { AnyRoute, AnySocketRoute } from '../../../core/http/route.ts'
import { MetricRegistry } from '../../../core/metrics/registry.ts'
import { Scope } from '../../../core/scope/scope.ts'

export interface Opened {
  readonly http: HttpServer
  readonly scope: Scope
  readonly metrics: MetricRegistry
  readonly settings: Writable<HttpSettings>
  readonly defects: { readonly error: unknown; readonly where: string }[]
  readonly failures: AuthFailure[]
  readonly logged: string[]
  url: string
  port: number
  wsUrl: string
}
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A server with routes of one plugin, listening on a free port, closed when the test ends. */
export async function open(
  routes: readonly AnyRoute[] = [ping],
  options: {
    settings?: Partial<HttpSettings>
    sockets?: readonly AnySocketRoute[]
    listen?: boolean
    idempotency?: Idempotency
    isHomePass?: (text: string) => boolean
  } = {},
): Promise<Opened> {
  const settings: Writable<HttpSettings> = {
    host: '127.0.0.1',
    port: 0,
    apiKey: undefined,
    tokensPerMinute: 100_000,
    failedAuthPerMinute: 10,
    maxBodyBytes: 10_000,
    maxJsonDepth: 32,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 20_000,
    sseKeepAliveMs: 15_000,
    streamStatusMs: 5000,
    socketBufferBytes: 1_000_000,
    socketFrameBytes: 65_536,
    socketIdleMs: 60_000,
    allowedHosts: [],
    allowedOrigins: [],
    trustedProxies: [],
    development: true,
    ...options.settings,
  }
  const defects: Opened['defects'] = []
  const failures: AuthFailure[] = []
  const logged: string[] = []
  const metrics = new MetricRegistry()
  const log = createConsola({
    level: 3,
    reporters: [
      {
        log: (entry) => {
          logged.push(entry.args.map((arg) => (typeof arg === 'string' ? arg : JSON.stringify(arg))).join(' '))
        },
      },
    ],
  })
  const http = createHttp({
    settings: () => settings,
    log,
    metrics,
    build: { version: '1.2.3', buildDate: '', gitSha: '' },
    ...(options.idempotency ? { idempotency: options.idempotency } : {}),
    ...(options.isHomePass ? { isHomePass: options.isHomePass } : {}),
    onDefect: (error, where) => {
      defects.push({ error, where })
    },
    onAuthFailure: (failure) => {
      failures.push(failure)
    },
  })
  const scope = new Scope('plugin')
  http.forPlugin(scope).add(...routes)
  http.forPlugin(scope).addSocket(...(options.sockets ?? []))
  const opened: Opened = { http, scope, metrics, settings, defects, failures, logged, url: '', port: 0, wsUrl: '' }
  if (options.listen !== false) {
    const { url, port } = await http.listen()
    Object.assign(opened, { url, port, wsUrl: url.replace('http', 'ws') })
  }
  onTestFinished(async () => {
    await http[Symbol.asyncDispose]()
  })
  return opened
}

export const ping = defineRoute({
  method: 'GET',
  path: '/api/ping',
  summary: 'Ping',
  auth: 'public',
  effect: 'read',
  cost: 1,
  returns: v.object({ pong: v.boolean() }),
  handle: () => ({ pong: true }),
})
export const guarded = defineRoute({
  method: 'GET',
  path: '/api/secret',
  summary: 'Secret',
  auth: 'bearer',
  effect: 'read',
  cost: 1,
  returns: v.object({ who: v.string() }),
  handle: ({ principal }) => ({ who: principal.kind }),
})
export const echo = defineRoute({
  method: 'POST',
  path: '/api/echo',
  summary: 'Echo',
  auth: 'bearer',
  effect: 'conversation',
  cost: 5,
  body: v.unknown(),
  returns: v.unknown(),
  handle: ({ body }) => body ?? null,
})

export interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
  readonly text: string
}
/** Writes bytes to the port and reads until the other side closes. */
export async function raw(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => socket.destroy())
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write(bytes)
  await new Promise((resolve) => socket.on('close', resolve))
  return parseAnswer(Buffer.concat(chunks).toString())
}
export function parseAnswer(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const headers = new Headers()
  for (const one of lines) headers.append(one.slice(0, one.indexOf(':')), one.slice(one.indexOf(':') + 1).trim())
  return { status: Number(line.split(' ')[1]), headers, body: rest.join('\r\n\r\n'), text }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** What is wrong with the headers every answer must carry; empty when nothing is. */
export function missingHeaders(headers: Headers): string[] {
  const wrong: string[] = []
  if (headers.get('content-security-policy')?.startsWith("default-src 'self'; ") !== true)
    wrong.push('content-security-policy')
  if (headers.get('x-frame-options') !== 'DENY') wrong.push('x-frame-options')
  if (headers.get('x-content-type-options') !== 'nosniff') wrong.push('x-content-type-options')
  if (headers.get('x-dns-prefetch-control') !== 'off') wrong.push('x-dns-prefetch-control')
  if (headers.get('strict-transport-security') !== 'max-age=63072000; includeSubDomains')
    wrong.push('strict-transport-security')
  if (!uuid.test(headers.get('x-request-id') ?? '')) wrong.push('x-request-id')
  if (headers.has('server') || headers.has('x-powered-by')) wrong.push('server')
  return wrong
}
export interface CodedBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly details: Record<string, unknown>
    readonly request_id: string
  }
}
