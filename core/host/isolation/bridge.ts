import * as v from 'valibot'
import { Refusal } from '../../errors/error.ts'
import { gate, notify, transform } from '../../hooks/hook.ts'
import type { Counter, Gauge, Histogram, Labels } from '../../metrics/metric.ts'
import { omitUndefined } from '../../schema/object.ts'
import type { Value } from '../../storage/database.ts'
import { describeInput } from '../../tools/input-schema.ts'
import type { ToolCallContext, ToolContent } from '../../tools/tool.ts'
import type { PluginContext } from '../context.ts'
import type { Tokens } from '../define.ts'
import { toRoute } from './bridged-route.ts'
import { Registration } from './shapes.ts'

export type Context = PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens>
/** Calls the process of the plugin. */
export type CallProcess = (method: string, input: unknown, signal?: AbortSignal) => Promise<unknown>
export interface BridgeOptions {
  readonly call: CallProcess
  /** Milliseconds that a gate or a transform may take. */
  readonly hookMs: () => number
}

/** Routes, tools, listeners, jobs and metrics of one plugin: it may not fill the memory of the daemon. */
const MAX_REGISTRATIONS = 1000
/** Characters of one of them, as JSON. */
const MAX_REGISTRATION_CHARS = 65_536
const SqlValue = v.custom<Value>(
  (value) => value === null || ['string', 'number', 'bigint'].includes(typeof value) || value instanceof Uint8Array,
)
const Query = v.object({
  method: v.picklist(['all', 'one', 'run']),
  sql: v.array(v.string()),
  values: v.array(SqlValue),
})
const Batch = v.object({ statements: v.array(v.object({ sql: v.string(), values: v.array(SqlValue) })) })
const Part = v.looseObject({ type: v.picklist(['text', 'image', 'audio', 'resource', 'resource_link']) })
/** What a tool answers. */
const Answer = v.union([
  v.string(),
  v.object({
    text: v.string(),
    failed: v.exactOptional(v.boolean()),
    content: v.exactOptional(v.array(v.custom<ToolContent>((part) => v.is(Part, part)))),
    structured: v.exactOptional(v.record(v.string(), v.unknown())),
  }),
])
const HookCall = v.object({ id: v.string(), payload: v.unknown() })
const ToolCall = v.object({ name: v.string(), args: v.unknown(), call: v.looseObject({ callId: v.string() }) })
const MethodCall = v.object({ method: v.string(), args: v.array(v.unknown()) })
const Label = v.pipe(v.string(), v.maxLength(256))
const Measure = v.object({
  key: v.string(),
  value: v.number(),
  labels: v.optional(v.record(Label, Label)),
})
/** Does for the process of a plugin what it asks for, with the context of the plugin: permissions are checked there. */
export class Bridge {
  readonly #ctx: Context
  readonly #call: CallProcess
  readonly #hookMs: () => number
  readonly #registered = new Map<string, ((value: number, labels?: Labels) => void) | true>()

  constructor(ctx: Context, { call, hookMs }: BridgeOptions) {
    this.#ctx = ctx
    this.#call = call
    this.#hookMs = hookMs
  }

  async handle(method: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    const ctx = this.#ctx
    switch (method) {
      case 'register':
        return this.#register(v.parse(Registration, input))
      case 'emit':
      case 'check':
      case 'apply':
        return await callHook(ctx, method, v.parse(HookCall, input))
      case 'tool': {
        const { name, args, call } = v.parse(ToolCall, input)
        return await ctx.tools.call(name, args, { ...call, signal } as unknown as ToolCallContext)
      }
      case 'db': {
        const query = v.parse(Query, input)
        return await ctx.db[query.method](query.sql as unknown as TemplateStringsArray, ...query.values)
      }
      case 'batch':
        return await ctx.db.batch(v.parse(Batch, input).statements)
      case 'run':
        // Until the process says that it has ended, by aborting the call; or has ended itself.
        return await ctx.run(() => untilAborted(signal))
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
    if (this.#registered.size >= MAX_REGISTRATIONS)
      throw new Refusal('payload_too_large', `More than ${MAX_REGISTRATIONS} routes, tools and metrics are not kept`)
    if (JSON.stringify(registration).length > MAX_REGISTRATION_CHARS)
      throw new Refusal('payload_too_large', `${key} has more than ${MAX_REGISTRATION_CHARS} characters`)
    this.#registered.set(key, this.#add(registration) ?? true)
  }

  #add(registration: Registration): ((value: number, labels?: Labels) => void) | void {
    const { key } = registration
    const { tools, jobs } = this.#ctx
    switch (registration.kind) {
      case 'route':
        return this.#ctx.routes.add(toRoute(registration, this.#call))
      case 'tool': {
        const { kind: _, key: __, input, ...tool } = registration
        return tools.add({
          ...omitUndefined(tool),
          input: describeInput(v.looseObject({}), input),
          // Functions do not reach the other process.
          run: async (value, { signal, progress: _progress, waiting: _waiting, client: _client, ...call }) =>
            v.parse(Answer, await this.#call('tool', { key, input: value, call }, signal)),
        })
      }
      case 'hook':
        return this.#listen(registration)
      case 'job': {
        const { label, cron, ms } = registration
        const run = async (signal: AbortSignal): Promise<void> => void (await this.#call('job', { key }, signal))
        return cron === undefined ? jobs.every(label, ms ?? 0, run) : jobs.cron(label, cron, run)
      }
      case 'metric':
        return this.#toMetric(registration)
    }
  }

  #listen({ key, id, hook }: Extract<Registration, { kind: 'hook' }>): void {
    const { hooks, log } = this.#ctx
    if (hook === 'notify')
      // Whoever emits does not wait for the process.
      return hooks.on(notify(id), (payload) => {
        this.#call('hook', { key, payload }).catch((error: unknown) => log.error(`${key} failed`, error))
      })
    if (hook === 'gate') return hooks.on(gate(id), async (payload) => void (await this.#ask(key, id, payload)))
    hooks.on(transform(id), (value) => this.#ask(key, id, value))
  }

  /** No answer is a refusal: what a gate does not permit does not happen. */
  async #ask(key: string, id: string, payload: unknown): Promise<unknown> {
    const ms = this.#hookMs()
    const late = AbortSignal.timeout(ms)
    try {
      return await this.#call('hook', { key, payload }, late)
    } catch (error) {
      if (!late.aborted) throw error
      throw new Refusal('service_unavailable', `A plugin did not answer hook "${id}" within ${ms} ms`, { cause: error })
    }
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
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

async function callHook(
  { hooks }: Context,
  method: 'emit' | 'check' | 'apply',
  { id, payload }: v.InferOutput<typeof HookCall>,
): Promise<unknown> {
  if (method === 'apply') return await hooks.apply(transform(id), payload)
  return await (method === 'emit' ? hooks.emit(notify(id), payload) : hooks.check(gate(id), payload))
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
  // Statements with a secret would bypass the check of tables, so only texts cross; the process has refused them.
  const given = name === 'vault' ? args.slice(0, method === 'write' ? 2 : 1).map(String) : [first, ...rest]
  const target = ctx[name] as unknown as Readonly<Record<string, (...values: readonly unknown[]) => unknown>>
  return await target[method]?.(...given)
}
