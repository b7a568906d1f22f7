import type * as v from 'valibot'
import { rowOf } from '../../errors/codes.ts'
import { changesOf, isChange } from '../../http/changes.ts'
import { isRaw, parseBody } from '../../http/input.ts'
import type { AnyRoute, EventStream, RouteInput } from '../../http/route.ts'
import { isObject } from '../../schema/object.ts'
import { parse } from '../../schema/parse.ts'
import { checkRoute, notAvailable } from './crossing.ts'
import type { RouteRegistration } from './shapes.ts'

/** Headers with credentials of the daemon, or of another site: they stay in the daemon. */
export const WITHHELD_HEADERS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key']

type Input = RouteInput<unknown, unknown, unknown>
type RemoteInput = Omit<Input, 'signal' | 'header' | 'headers'> & {
  readonly headers: Readonly<Record<string, string>>
}
interface RouteCall {
  readonly input: RemoteInput
  /** Asks what came of the effect with this id, instead of answering the request. */
  readonly recalled?: string
}

/** What the daemon needs to know of a route. Throws for one that does not cross. */
export function describeRoute(route: AnyRoute): RouteRegistration {
  checkRoute(route)
  const { method, path, body } = route
  const { summary, description, effect, cost, status, feed, crossSite, produces, idempotent, keepsAnswer } = route
  return {
    kind: 'route',
    key: `route ${method} ${path}`,
    auth: route.auth as RouteRegistration['auth'],
    method,
    path,
    summary,
    description,
    effect,
    cost,
    status,
    feed,
    crossSite,
    produces,
    idempotent,
    keepsAnswer,
    hasBody: body !== undefined,
    rawBytes: body !== undefined && isRaw(body) ? body.maxBytes : undefined,
    hasRecall: route.recall !== undefined,
    errors: route.errors?.map((error) => ({ code: typeof error === 'string' ? error : error.code, ...rowOf(error) })),
    answers: Object.entries(route.answers ?? {}).map(([code, { description: text, json, type }]) => ({
      status: Number(code),
      description: text,
      json: json !== undefined,
      type,
    })),
  }
}

/** Answers a request that the daemon passes on. */
export async function callRoute(route: AnyRoute, { input, recalled }: RouteCall, signal: AbortSignal): Promise<object> {
  const parsed = await toInput(route, input, signal)
  const answer: unknown = recalled === undefined ? await route.handle(parsed) : await route.recall?.(recalled, parsed)
  if (!isObject(answer) || !(Symbol.asyncIterator in answer)) return { value: answer }
  const { headers, holdsStatus } = answer as unknown as EventStream
  return { events: answer, headers, holdsStatus }
}

async function toInput(route: AnyRoute, { headers, ...rest }: RemoteInput, signal: AbortSignal): Promise<never> {
  const params = route.params ? parse(route.params, rest.params, 'path') : rest.params
  const query = route.query ? parse(route.query, rest.query, 'query') : undefined
  const facts = { ...rest, params, query, signal, header: headerOf(headers), headers: () => headers }
  if (route.body === undefined || isRaw(route.body)) return facts as never
  const found = { unchanged: false }
  // As the daemon does with the body of a route of its own.
  const prepare = async (value: unknown, schema: v.GenericSchema): Promise<unknown> => {
    const changes = changesOf(schema, value, await route.shown?.({ params }))
    found.unchanged = changes === undefined
    return changes
  }
  const body = await parseBody(route.body, rest.body, isChange(route) ? prepare : undefined)
  return { ...facts, ...(found.unchanged ? { body: {}, unchanged: true } : { body }) } as never
}

function headerOf(headers: Readonly<Record<string, string>>): (name: string) => string | undefined {
  return (name) => (WITHHELD_HEADERS.includes(name) ? notAvailable(`request header "${name}"`) : headers[name])
}
