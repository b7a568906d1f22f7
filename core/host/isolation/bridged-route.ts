import * as v from 'valibot'
import { defineError } from '../../errors/codes.ts'
import type { ErrorCode } from '../../errors/error.ts'
import { rawBody } from '../../http/route.ts'
import type { AnyRoute, EventStream, OtherAnswer, ServerSentEvent } from '../../http/route.ts'
import { isObject, omitUndefined } from '../../schema/object.ts'
import type { CallProcess } from './bridge.ts'
import { WITHHELD_HEADERS } from './remote-route.ts'
import type { RouteRegistration } from './shapes.ts'

type Input = Parameters<AnyRoute['handle']>[0]

/** The route in the daemon whose requests are answered by the process of the plugin. */
export function toRoute(registration: RouteRegistration, call: CallProcess): AnyRoute {
  const { kind: _, key, hasBody, rawBytes, hasRecall, path, errors, answers, ...rest } = registration
  const body = rawBytes === undefined ? v.unknown() : rawBody(rawBytes)
  const ask = async (input: Input, recalled?: string): Promise<unknown> =>
    readAnswer(await call('route', { key, input: factsOf(input), recalled }, input.signal))
  const defined = {
    ...omitUndefined(rest),
    path: path as `/${string}`,
    query: v.looseObject({}),
    ...(hasBody && { body }),
    ...(errors && { errors: errors.map(({ code, ...row }) => defineError(code as ErrorCode, row)) }),
    answers: Object.fromEntries(answers.map(({ status, ...answer }) => [status, toAnswer(answer)] as const)),
    returns: v.any(),
    handle: (input: Input) => ask(input),
    ...(hasRecall && { recall: (effectId: string, input: Input) => ask(input, effectId) }),
  }
  return defined as unknown as AnyRoute
}

function toAnswer({ json, ...answer }: Omit<RouteRegistration['answers'][number], 'status'>): OtherAnswer {
  return { ...omitUndefined(answer), ...(json && { json: v.any() }) }
}

/** Everything of a request but what the daemon keeps to itself. */
function factsOf(input: Input): object {
  const { params, query, body, requestId, principal, clientAddress, effectId } = input
  const headers = Object.entries(input.headers()).filter(([name]) => !WITHHELD_HEADERS.includes(name))
  return { params, query, body, requestId, principal, clientAddress, effectId, headers: Object.fromEntries(headers) }
}

const Headers = v.record(v.string(), v.string())
const Reply = v.object({
  '~reply': v.literal(true),
  status: v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599)),
  headers: Headers,
  body: v.union([v.string(), v.instance(Uint8Array), v.null()]),
})
const Streamed = v.object({
  events: v.custom<AsyncIterable<unknown>>((value) => isObject(value) && Symbol.asyncIterator in value),
  headers: v.optional(Headers),
  holdsStatus: v.optional(v.literal(true)),
})
const Event = v.object({
  event: v.optional(v.string()),
  data: v.string(),
  id: v.optional(v.string()),
  provisional: v.optional(v.literal(true)),
})

function readAnswer(answer: unknown): unknown {
  if (!isObject(answer)) throw new Error('its process answered a request with what is no answer')
  if ('events' in answer) return toEvents(v.parse(Streamed, answer))
  const { value } = answer
  return isObject(value) && '~reply' in value ? v.parse(Reply, value) : value
}

function toEvents({ events, headers, holdsStatus }: v.InferOutput<typeof Streamed>): EventStream {
  return {
    ...omitUndefined({ headers, holdsStatus }),
    [Symbol.asyncIterator]() {
      const iterator = events[Symbol.asyncIterator]()
      const next = async (): Promise<IteratorResult<ServerSentEvent>> => {
        const { done, value } = await iterator.next()
        if (done === true) return { done, value: undefined }
        return { done: false, value: omitUndefined(v.parse(Event, value)) as ServerSentEvent }
      }
      // Not a generator: one that was never begun does not leave what it reads.
      const leave = async (): Promise<IteratorResult<ServerSentEvent>> => {
        await iterator.return?.()
        return { done: true, value: undefined }
      }
      return { next, return: leave }
    },
  }
}
