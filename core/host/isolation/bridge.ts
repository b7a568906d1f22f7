import * as v from 'valibot'
import { Refusal } from '../../errors/error.ts'
import { notify } from '../../hooks/hook.ts'
import { rawBody } from '../../http/route.ts'
import type { AnyRoute } from '../../http/route.ts'
import type { Counter, Gauge, Histogram, Labels } from '../../metrics/metric.ts'
import { omitUndefined } from '../../schema/object.ts'
import type { Value } from '../../storage/database.ts'
import { describeInput } from '../../tools/input-schema.ts'
import type { PluginContext } from '../context.ts'
import type { Tokens } from '../define.ts'
import { Registration } from './shapes.ts'

export type Context = PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens>
/** Calls the process of the plugin. */
export type CallProcess = (method: string, input: unknown, signal?: AbortSignal) => Promise<unknown>

/** Headers of a request that cross to the process. */
const HEADERS = ['accept', 'accept-language', 'content-type', 'last-event-id', 'user-agent']
const SqlValue = v.custom<Value>(
  (value) => value === null || ['string', 'number', 'bigint'].includes(typeof value) || value instanceof Uint8Array,
)
const Query = v.object({
  method: v.picklist(['all', 'one', 'run']),
  sql: v.array(v.string()),
  values: v.array(SqlValue),
})
const Batch = v.object({ statements: v.array(v.object({ sql: v.string(), values: v.array(SqlValue) })) })
const MethodCall = v.object({ method: v.string(), args: v.array(v.unknown()) })
const Measure = v.object({
  key: v.string(),
  value: v.number(),
  labels: v.optional(v.record(v.string(), v.string())),
})
const Request = v.object({
  url: v.string(),
  request: v.object({
    method: v.optional(v.string()),
    headers: v.optional(v.record(v.string(), v.string())),
    body: v.optional(v.union([v.string(), v.instance(Uint8Array)])),
    headersTimeoutMs: v.optional(v.number()),
    idleTimeoutMs: v.optional(v.number()),
    totalTimeoutMs: v.optional(v.number()),
    maxBytes: v.optional(v.number()),
  }),
})

/** Does for the process of a plugin what it asks for, with the context of the plugin: permissions are checked there. */
export class Bridge {
  readonly #ctx: Context
  readonly #call: CallProcess
  readonly #registered = new Map<string, ((value: number, labels?: Labels) => void) | true>()

  constructor(ctx: Context, call: CallProcess) {
    this.#ctx = ctx
    this.#call = call
  }

  async handle(method: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    const ctx = this.#ctx
    switch (method) {
      case 'register':
        return this.#register(v.parse(Registration, input))
      case 'fetch':
        return await this.#fetch(v.parse(Request, input), signal)
      case 'admit':
        return await ctx.admit(v.parse(v.string(), input))
      case 'emit': {
        const { id, payload } = v.parse(v.object({ id: v.string(), payload: v.unknown() }), input)
        return await ctx.hooks.emit(notify(id), payload)
      }
      case 'db': {
        const query = v.parse(Query, input)
        return await ctx.db[query.method](query.sql as unknown as TemplateStringsArray, ...query.values)
      }
      case 'batch':
        return await ctx.db.batch(v.parse(Batch, input).statements)
      case 'measure': {
        const { key, value, labels } = v.parse(Measure, input)
        const metric = this.#registered.get(key)
        return typeof metric === 'function' ? metric(value, labels) : undefined
      }
      case 'storage':
      case 'vault':
      case 'log':
        return await callMethod(ctx, method, v.parse(MethodCall, input))
      default:
        throw new Refusal('forbidden', `"${method}" is not available to a plugin in a process of its own`)
    }
  }

  /** A process that was started again registers the same once more. */
  #register(registration: Registration): void {
    const { key } = registration
    if (this.#registered.has(key)) return
    this.#registered.set(key, this.#add(registration) ?? true)
  }

  #add(registration: Registration): ((value: number, labels?: Labels) => void) | void {
    const { key } = registration
    const { tools, hooks, jobs } = this.#ctx
    switch (registration.kind) {
      case 'route':
        return this.#ctx.routes.add(this.#toRoute(registration))
      case 'tool': {
        const { kind: _, key: __, input, ...tool } = registration
        return tools.add({
          ...omitUndefined(tool),
          input: describeInput(v.looseObject({}), input),
          run: async (value, { signal, ...call }) =>
            String(await this.#call('tool', { key, input: value, call }, signal)),
        })
      }
      case 'hook':
        // Whoever emits does not wait for the process.
        return hooks.on(notify(registration.id), (payload) => this.#notify(key, payload))
      case 'job': {
        const { label, cron, ms } = registration
        const run = async (signal: AbortSignal): Promise<void> => void (await this.#call('job', { key }, signal))
        return cron === undefined ? jobs.every(label, ms ?? 0, run) : jobs.cron(label, cron, run)
      }
      case 'metric':
        return this.#toMetric(registration)
    }
  }

  #notify(key: string, payload: unknown): void {
    this.#call('hook', { key, payload }).catch((error: unknown) => this.#ctx.log.error(`${key} failed`, error))
  }

  #toRoute(route: Extract<Registration, { kind: 'route' }>): AnyRoute {
    const { kind: _, key, hasBody, rawBytes, path, ...rest } = route
    const body = rawBytes === undefined ? v.unknown() : rawBody(rawBytes)
    const defined = {
      ...omitUndefined(rest),
      path: path as `/${string}`,
      query: v.looseObject({}),
      ...(hasBody && { body }),
      returns: v.any(),
      handle: async (input: Parameters<AnyRoute['handle']>[0]) => {
        const { params, query, requestId, principal, clientAddress, effectId, signal } = input
        const headers = Object.fromEntries(
          HEADERS.flatMap((name) => {
            const value = input.header(name)
            return value === undefined ? [] : [[name, value] as const]
          }),
        )
        const facts = { params, query, body: input.body, requestId, principal, clientAddress, effectId, headers }
        return await this.#call('route', { key, input: facts }, signal)
      },
    }
    return defined as unknown as AnyRoute
  }

  #toMetric({
    type,
    name,
    help,
    bounds = [],
  }: Extract<Registration, { kind: 'metric' }>): (value: number, labels?: Labels) => void {
    const { metrics } = this.#ctx
    if (type === 'counter') {
      const counter: Counter = metrics.counter(name as `svc_${string}_total`, help)
      return (value, labels) => counter.add(value, labels)
    }
    if (type === 'gauge') {
      const gauge: Gauge = metrics.gauge(name as `svc_${string}`, help)
      return (value, labels) => gauge.set(value, labels)
    }
    const histogram: Histogram = metrics.histogram(name as `svc_${string}`, help, bounds)
    return (value, labels) => histogram.observe(value, labels)
  }

  async #fetch({ url, request }: v.InferOutput<typeof Request>, signal: AbortSignal): Promise<unknown> {
    const answer = await this.#ctx.fetch(url, { ...omitUndefined(request), signal })
    const response = answer.toResponse()
    return {
      status: answer.status,
      url: answer.url,
      headers: [...response.headers],
      body: new Uint8Array(await response.arrayBuffer()),
    }
  }
}

const METHODS: Readonly<Record<string, readonly string[]>> = {
  storage: ['getItem', 'setItem', 'hasItem', 'removeItem', 'getKeys', 'clear'],
  vault: ['read', 'write', 'remove', 'names'],
  log: ['error', 'warn', 'info', 'debug'],
}
/** Calls one of the methods above. Keys and names are texts. */
async function callMethod(
  ctx: Context,
  name: 'storage' | 'vault' | 'log',
  { method, args }: v.InferOutput<typeof MethodCall>,
): Promise<unknown> {
  const [first, ...rest] = args
  if (METHODS[name]?.includes(method) !== true || (name !== 'log' && first !== undefined && typeof first !== 'string'))
    throw new Refusal('invalid_request', `"${name}.${method}" is not available to a plugin in a process of its own`)
  // Statements with a secret would bypass the check of tables, so only texts cross.
  const given = name === 'vault' ? args.slice(0, method === 'write' ? 2 : 1).map(String) : [first, ...rest]
  const target = ctx[name] as unknown as Readonly<Record<string, (...values: readonly unknown[]) => unknown>>
  return await target[method]?.(...given)
}
