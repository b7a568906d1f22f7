import * as v from 'valibot'
import { rowOf } from '../errors/codes.ts'
import type { ErrorDefinition } from '../errors/codes.ts'
import type { ErrorCode } from '../errors/error.ts'
import type { AnyRoute, AnySocketRoute, OtherAnswer, RawBody } from './route.ts'
import { exampleOf } from '../schema/example.ts'
import { openApiSchemas } from '../schema/json-schema.ts'
import { isObject } from '../schema/object.ts'
import type { JsonObject, SchemaWriter } from '../schema/json-schema.ts'

export interface DocumentOptions {
  readonly version: string
  /** Each with the name of its plugin. */
  readonly routes: readonly { readonly plugin: string; readonly route: AnyRoute }[]
  readonly sockets: readonly { readonly plugin: string; readonly route: AnySocketRoute }[]
}
interface Names {
  readonly path: string
  readonly params: ReadonlyMap<string, string>
}

const errorSchemas: JsonObject = {
  FlatError: { type: 'object', required: ['error'], properties: { error: { type: 'string' } } },
  Error: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'details', 'request_id'],
        properties: {
          code: { type: 'string' },
          message: { type: 'string' },
          details: { type: 'object', additionalProperties: true },
          request_id: { type: 'string', format: 'uuid' },
        },
      },
    },
  },
}

/** The OpenAPI 3.0.3 document of the routes. */
export async function openApiDocument(options: DocumentOptions): Promise<JsonObject> {
  const schemas = await openApiSchemas()
  const paths: Record<string, JsonObject> = {}
  const names = pathNames([...options.routes, ...options.sockets].map(({ route }) => route.path))
  const ids = new Set<string>()
  for (const { plugin, route } of options.routes) {
    const named = names(route.path)
    const path = (paths[named.path] ??= {})
    path[route.method.toLowerCase()] = operation(
      plugin,
      route,
      named,
      operationId(route.method, named.path, ids),
      schemas,
    )
  }
  for (const { plugin, route } of options.sockets) {
    const named = names(route.path)
    const path = (paths[named.path] ??= {})
    path['get'] ??= socketOperation(plugin, route, named, operationId('connect', named.path, ids), schemas)
  }
  const tags = [...new Set([...options.routes, ...options.sockets].map(({ plugin }) => plugin))].sort()
  return {
    openapi: '3.0.3',
    info: {
      title: 'svc',
      version: options.version,
      description: 'Hosts autonomous AI agents.',
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: '/' }],
    tags: tags.map((name) => ({ name, description: `What the plugin ${name} answers.` })),
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      schemas: { ...errorSchemas, ...schemas.components },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        api_key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
    },
  }
}

/** Paths that differ in parameter names only are one path in OpenAPI: the first names given are used for all. */
function pathNames(paths: readonly string[]): (path: string) => Names {
  const first = new Map<string, readonly string[]>()
  const shapeOf = (path: string): string => path.replace(/(\*\*)?:\w+/g, '{}')
  const paramsOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '')
  for (const path of paths) if (!first.has(shapeOf(path))) first.set(shapeOf(path), paramsOf(path))
  return (path) => {
    const shown = first.get(shapeOf(path)) ?? []
    let at = 0
    return {
      path: path.replace(/(\*\*)?:\w+/g, () => `{${shown[at++]}}`),
      params: new Map(paramsOf(path).map((name, index) => [name, shown[index] ?? name])),
    }
  }
}

function operationId(method: string, path: string, taken: Set<string>): string {
  const words = `${method.toLowerCase()}/${path}`.split(/[^A-Za-z0-9{}]+/).filter((word) => word !== '')
  const base = words
    .map((word) => (word.startsWith('{') ? `by_${word.slice(1, -1)}` : word.replace(/[{}]/g, '')))
    .join('_')
  let id = base
  for (let n = 2; taken.has(id); n++) id = `${base}_${n}`
  taken.add(id)
  return id
}

function operation(plugin: string, route: AnyRoute, named: Names, id: string, schemas: SchemaWriter): JsonObject {
  const body = requestBody(route, id, schemas)
  return {
    operationId: id,
    tags: [plugin],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    parameters: [
      ...pathParameters(route.params, named, id, schemas),
      ...queryParameters(route.query, id, schemas),
      ...(route.idempotent === true ? [idempotencyKey] : []),
    ],
    ...(body ? { requestBody: body } : {}),
    responses: { ...failures(route), ...success(route, id, schemas), ...others(route, id, schemas) },
    ...(route.callback ? { callbacks: callbacks(route.callback, id, schemas) } : {}),
    security: route.auth === 'bearer' ? [{ bearer: [] }, { api_key: [] }] : [],
    'x-cost': route.cost,
    'x-effect': route.effect,
  }
}

function callbacks(
  { name, to, summary, body, headers, example }: NonNullable<AnyRoute['callback']>,
  id: string,
  schemas: SchemaWriter,
): JsonObject {
  const post = {
    operationId: `${id}_${name}`,
    summary,
    parameters: Object.entries(headers).map(([header, description]) => ({
      name: header,
      in: 'header',
      required: false,
      schema: { type: 'string' },
      description,
    })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemas.write(body, 'output', `${id}_${name}`), example } },
    },
    responses: { '2XX': { description: 'Taken. Any other answer is tried again' } },
    security: [],
  }
  return { [name]: { [`{$request.body#/${to}}`]: { post } } }
}

const idempotencyKey: JsonObject = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description:
    'The same key with the same body is one effect and one answer for 24 hours; with another body it is 409. ' +
    'An answer given again carries `Idempotent-Replayed: true`.',
}

function socketOperation(
  plugin: string,
  route: AnySocketRoute,
  named: Names,
  id: string,
  schemas: SchemaWriter,
): JsonObject {
  return {
    operationId: id,
    tags: [plugin],
    summary: route.summary,
    description: 'A WebSocket: send an upgrade request.',
    parameters: [...pathParameters(route.params, named, id, schemas), ...queryParameters(route.query, id, schemas)],
    responses: {
      101: { description: 'The protocol switches to WebSocket' },
      ...failures({ ...route, body: undefined }),
    },
    security: route.auth === 'bearer' ? [{ bearer: [] }, { api_key: [] }] : [],
    'x-cost': route.cost,
    'x-effect': route.effect,
    'x-frame-cost': route.frameCost,
  }
}

function pathParameters(
  schema: v.GenericSchema | undefined,
  named: Names,
  id: string,
  schemas: SchemaWriter,
): JsonObject[] {
  const written = schema === undefined ? {} : schemas.write(schema, 'input', `${id}_path`)
  const properties = isObject(written['properties']) ? written['properties'] : {}
  return [...named.params].map(([name, shown]) => ({
    name: shown,
    in: 'path',
    required: true,
    schema: properties[name] ?? { type: 'string' },
  }))
}

function queryParameters(schema: v.GenericSchema | undefined, id: string, schemas: SchemaWriter): JsonObject[] {
  if (schema === undefined) return []
  const written = schemas.write(schema, 'input', `${id}_query`)
  const properties = isObject(written['properties']) ? written['properties'] : {}
  const required: unknown[] = Array.isArray(written['required']) ? written['required'] : []
  return Object.entries(properties).map(([name, inner]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema: inner,
  }))
}

function isRaw(body: v.GenericSchema | RawBody): body is RawBody {
  return '~body' in body
}

function requestBody(route: AnyRoute, id: string, schemas: SchemaWriter): JsonObject | undefined {
  const declared: v.GenericSchema | RawBody | undefined = route.body
  const body = declared && isRaw(declared) && declared.json ? declared.json : declared
  // OpenAPI 3.0 gives a body of GET no meaning; it is accepted all the same.
  if (body === undefined || route.method === 'GET') return undefined
  if (isRaw(body)) {
    const bytes = { type: 'string', format: 'binary' }
    const form =
      body.form === undefined
        ? {}
        : {
            'multipart/form-data': {
              schema: { type: 'object', required: [body.form], properties: { [body.form]: bytes } },
            },
          }
    return { required: false, content: { ...form, 'application/octet-stream': { schema: bytes } } }
  }
  const schema = schemas.write(body, 'input', `${id}_body`)
  const made: unknown =
    route.example?.body ??
    [true, false]
      .map((brief) => exampleOf(schema, schemas.components, { brief }))
      .find((value) => v.safeParse(body, value).success)
  const example = v.safeParse(body, made).success ? made : undefined
  return {
    required: !v.safeParse(body, undefined).success && !v.safeParse(body, {}).success,
    content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } },
  }
}

function success(route: AnyRoute, id: string, schemas: SchemaWriter): JsonObject {
  const status = route.status ?? 200
  if (status === 204) return { 204: { description: 'Done' } }
  if (status === 302) return { 302: { description: route.summary, headers: location } }
  const content: JsonObject = {}
  if (route.produces !== undefined) content[route.produces] = bodyOf(route.produces)
  const schema = schemas.write(route.returns, 'output', `${id}_answer`)
  const example = route.example?.returns ?? exampleOf(schema, schemas.components)
  // A route that answers pages or streams only has nothing to say in `returns`.
  if (Object.keys(schema).length > 0 || (Object.keys(content).length === 0 && route.streams === undefined))
    content['application/json'] = { schema, ...(example === undefined ? {} : { example }) }
  const streams: v.GenericSchema | undefined = route.streams
  if (streams !== undefined)
    content['text/event-stream'] = {
      // Without a type: to some readers it is the schema of the whole text, to others of each event.
      schema: { description: 'Server-sent events; `data` is JSON.' },
      'x-event': schemas.write(streams, 'output', `${id}_event`),
    }
  return { [status]: { description: route.summary, content } }
}

const location: JsonObject = { Location: { schema: { type: 'string' } } }
const bodyOf = (type: string): JsonObject => ({
  schema: { type: 'string', ...(type.startsWith('text/') ? {} : { format: 'binary' }) },
})
/** Answers beside the usual one. A status that failures have as well may have either body. */
function others(route: AnyRoute, id: string, schemas: SchemaWriter): JsonObject {
  const known = failures(route)
  const answers: Readonly<Record<number, OtherAnswer>> = route.answers ?? {}
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, json, type }]) => {
      const failing = known[status]
      const content: JsonObject = isObject(failing) && isObject(failing['content']) ? { ...failing['content'] } : {}
      const failed = isObject(content['application/json']) ? content['application/json']['schema'] : undefined
      if (json !== undefined) {
        const schema = schemas.write(json, 'output', `${id}_${status}`)
        const example = exampleOf(schema, schemas.components)
        content['application/json'] = {
          schema: failed === undefined ? schema : { anyOf: [failed, schema] },
          ...(example === undefined ? {} : { example }),
        }
      }
      if (type !== undefined) content[type] = bodyOf(type)
      const answer = {
        ...(isObject(failing) ? failing : {}),
        description,
        ...(['302', '303'].includes(status) ? { headers: location } : {}),
      }
      return [status, Object.keys(content).length === 0 ? answer : { ...answer, content }]
    }),
  )
}

type Failing = Pick<AnyRoute, 'auth' | 'body' | 'errors'> & {
  readonly renderError?: AnyRoute['renderError']
  readonly idempotent?: boolean
}
/** One answer per status: the codes every route can give, and its own. */
function failures(route: Failing): JsonObject {
  const codes: (ErrorCode | ErrorDefinition)[] = [
    ...(route.errors ?? []),
    'rate_limit',
    'internal_error',
    'service_unavailable',
    'forbidden',
    'invalid_request',
  ]
  if (route.idempotent === true) codes.push('conflict')
  if (route.body) codes.push('payload_too_large')
  if (route.auth !== 'public') codes.push('unauthorized')
  const byStatus = new Map<number, Set<ErrorCode | ErrorDefinition>>()
  for (const code of codes) byStatus.set(rowOf(code).status, (byStatus.get(rowOf(code).status) ?? new Set()).add(code))
  const answers = Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, set]) => {
        const formats = new Set(
          [...set].map((code) =>
            rowOf(code).format === 'flat' ? '#/components/schemas/FlatError' : '#/components/schemas/Error',
          ),
        )
        const refs = [...formats].map(($ref) => ({ $ref }))
        const schema = route.renderError ? { type: 'object' } : refs.length === 1 ? refs[0] : { oneOf: refs }
        return [
          status,
          {
            description: [...set]
              .map((error) => (typeof error === 'string' ? error : error.code))
              .sort()
              .join(', '),
            ...(status === 429 || status === 503
              ? { headers: { 'Retry-After': { schema: { type: 'integer' } } } }
              : {}),
            content: { 'application/json': { schema } },
          },
        ]
      }),
  )
  return { ...answers, ...unread }
}
const refused = (description: string): JsonObject => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
})
/** What is answered to a request whose head was never read to its end. */
const unread: JsonObject = {
  408: refused('The request was not complete in time'),
  431: refused('The headers are larger than http.max_header_bytes'),
}
