import { readdirSync, readFileSync } from 'node:fs'
import { generator } from './crash.ts'
import { call, prepareHome } from './home.ts'
import { beyond } from './report.ts'
import type { FaultOptions, FaultReport } from './report.ts'
import { textUnlessFeed } from '../support/feed.ts'
import type { Json } from '../support/json.ts'

type JsonObject = Record<string, Json>
/** Half a surrogate pair has no encoding. */
const encode = (text: string): string => encodeURIComponent(text.toWellFormed())
/** Ends the daemon: tried by tests of their own. */
const left = new Set(['POST /api/shutdown', 'POST /api/restart', 'POST /api/restore'])
/** Takes as long as there is data to copy, while others are served. */
const long = new Set(['POST /api/backup'])
/**
 * Milliseconds that threads of the daemon were ready to run and others had the processor: they say nothing of the
 * daemon.
 */
function starvedMs(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce(
      (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[1]) / 1e6,
      0,
    )
  } catch {
    // Only Linux tells, and a thread may end meanwhile.
    return 0
  }
}

/**
 * Requests made from the daemon's own OpenAPI document and bent in many ways: never a 500, never a hang, always one
 * of the two error bodies, the id and the headers.
 */
export async function fuzz({ built, rounds, seed }: FaultOptions): Promise<FaultReport> {
  const random = generator(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  using home = await prepareHome({ built })
  await using daemon = await home.start({ env: { SVC_PLUGINS__APPROVALS__POLICY: 'never' } })
  const document = (await call(daemon, 'GET', '/api/openapi.json')).body as {
    paths: JsonObject
    components: { schemas: JsonObject }
  }
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods as JsonObject).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation: operation as JsonObject,
      })),
    )
    .filter(({ method, path, operation }) => !left.has(`${method} ${path}`) && !('101' in operation['responses']))
  let agent = home.agent
  const problems: string[] = []
  const statuses: Record<string, number> = {}
  let slowest = { ms: 0, what: '' }
  let starvation = 0
  const watch = setInterval(() => {
    starvation = starvedMs(daemon.pid) || starvation
  }, 100)

  const odd = (): unknown =>
    pick<unknown>([
      null,
      true,
      0,
      -1,
      1e308,
      0.1,
      '',
      ' ',
      'x'.repeat(3_000),
      '\u0000',
      '\ud800',
      '../../etc/passwd',
      "'; DROP TABLE x; --",
      '<script>',
      '{{input}}',
      '🦊',
      [],
      [[[]]],
      {},
      { __proto__: { a: 1 } },
      { constructor: 1 },
      '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
      agent,
      'a\r\nb',
      2 ** 53,
      '2026-99-99',
      'http://127.0.0.1:1/',
    ])
  const make = (schema: JsonObject, depth = 0): unknown => {
    const node =
      typeof schema['$ref'] === 'string'
        ? (document.components.schemas[schema['$ref'].split('/').at(-1) ?? ''] as JsonObject)
        : schema
    if (node === undefined || depth > 5 || random() < 0.08) return odd()
    if (node['enum']) return pick(node['enum'] as unknown[])
    const variants = (node['anyOf'] ?? node['oneOf']) as JsonObject[] | undefined
    if (variants) return make(pick(variants), depth + 1)
    if (node['type'] === 'object')
      return Object.fromEntries([
        ...Object.entries((node['properties'] ?? {}) as JsonObject)
          .filter(() => random() < 0.8)
          .map(([key, inner]) => [key, make(inner as JsonObject, depth + 1)]),
        ...(random() < 0.1 ? [['unknown_field', odd()]] : []),
      ])
    if (node['type'] === 'array')
      return Array.from({ length: Math.floor(random() * 4) }, () =>
        make((node['items'] ?? {}) as JsonObject, depth + 1),
      )
    if (node['type'] === 'integer' || node['type'] === 'number')
      return pick([0, 1, -1, 5, 1e9, 2.5, Number(node['minimum'] ?? 3), Number(node['maximum'] ?? 4)])
    if (node['type'] === 'boolean') return random() < 0.5
    return random() < 0.5 ? odd() : pick(['a', 'name', 'gpt-5-mini', agent, 'day'])
  }
  const mutate = (text: string): string =>
    random() < 0.06
      ? text.slice(0, Math.floor(random() * text.length))
      : random() < 0.04
        ? `${'['.repeat(300)}${text}`
        : text

  const one = async (): Promise<void> => {
    const { method, path, operation } = pick(operations)
    const example = operation['requestBody']?.content?.['application/json']
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encode(String(random() < 0.6 && /^(id|agent_id)$/.test(name) ? agent : random() < 0.5 ? 'x' : odd())),
    )
    const query = ((operation['parameters'] ?? []) as JsonObject[])
      .filter((parameter) => parameter['in'] === 'query' && random() < 0.4)
      .map(
        (parameter) =>
          `${encode(String(parameter['name']))}=${encode(String(make((parameter['schema'] ?? {}) as JsonObject)))}`,
      )
      .join('&')
    const body =
      example === undefined || method === 'GET'
        ? undefined
        : mutate(JSON.stringify(random() < 0.3 ? example.example : make(example.schema as JsonObject)) ?? 'null')
    const [since, starved] = [performance.now(), starvation]
    const what = `${method} ${url}${query === '' ? '' : `?${query}`} ${body?.slice(0, 300) ?? ''}`
    let response: Response
    try {
      response = await fetch(`${daemon.url}${url}${query === '' ? '' : `?${query}`}`, {
        method,
        headers: { 'content-type': random() < 0.97 ? 'application/json' : 'text/plain' },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(long.has(`${method} ${path}`) ? 120_000 : 20_000),
      })
      const text = await (method === 'GET' ? textUnlessFeed(response) : response.text())
      const wallMs = performance.now() - since
      const tookMs = wallMs < 1_000 ? wallMs : wallMs - Math.max(0, starvedMs(daemon.pid) - starved)
      if (tookMs > slowest.ms && !long.has(`${method} ${path}`)) slowest = { ms: tookMs, what }
      statuses[response.status] = (statuses[response.status] ?? 0) + 1
      if (response.status === 500) problems.push(`500: ${what} -> ${text.slice(0, 200)}`)
      if (
        !/^[0-9a-f-]{36}$/.test(response.headers.get('x-request-id') ?? '') ||
        response.headers.get('x-content-type-options') !== 'nosniff'
      )
        problems.push(`headers are missing: ${what}`)
      if (response.status >= 400) {
        const { error, jsonrpc } = JSON.parse(text) as { error: unknown; jsonrpc?: unknown }
        const coded =
          typeof error === 'object' &&
          error !== null &&
          'code' in error &&
          'message' in error &&
          (jsonrpc === '2.0' || (path.startsWith('/v1/') ? 'type' in error : 'details' in error))
        if (typeof error !== 'string' && !coded)
          problems.push(`an error of no known shape: ${what} -> ${text.slice(0, 200)}`)
        if (/node_modules|\.ts:\d|SQLITE_|SELECT .* FROM|INSERT INTO/.test(text))
          problems.push(`an error tells of the inside: ${what} -> ${text.slice(0, 200)}`)
      }
    } catch (error) {
      problems.push(`${error instanceof Error ? error.name : String(error)}: ${what}`)
    }
  }
  await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      for (let request = worker; request < rounds && problems.length < 20; request += 8) {
        await one()
        // The fuzzer may have deleted or stopped the agent that makes the rest interesting.
        if (request % 100 !== worker || (await call(daemon, 'GET', `/api/agents/${agent}`)).status === 200) continue
        agent = (
          await call(daemon, 'POST', '/api/agents', {
            manifest_toml: `name = "fuzzed-${request}"\n[model]\nprovider = "builtin"\nmodel = "offline"\n[capabilities]\ntools = ["*"]\n`,
          })
        ).body.agent_id
      }
    }),
  )
  clearInterval(watch)
  const health = await call(daemon, 'GET', '/api/health')
  if (health.body.panic_count > 0)
    problems.push(
      `${health.body.panic_count} defects: ${daemon
        .output()
        .split('\n')
        .filter((line) => / error /.test(line))
        .slice(-3)
        .join(' | ')}`,
    )
  problems.push(...beyond(built, `ms of ${slowest.what}`, slowest.ms, 2_000))
  await daemon.stop()
  return {
    requests: Object.values(statuses).reduce((sum, count) => sum + count, 0),
    operations: operations.length,
    statuses,
    slowest_ms: Math.round(slowest.ms),
    slowest: slowest.what,
    problems: [...new Set(problems)].slice(0, 10),
  }
}
