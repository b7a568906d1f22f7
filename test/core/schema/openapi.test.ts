import { expect, test } from 'vitest'
import * as v from 'valibot'
import { defineError } from '../../../core/errors/codes.ts'
import { secret } from '../../../core/schema/secret.ts'
import { defineRoute, defineSocket, rawBody } from '../../../core/http/route.ts'
import type { AnyRoute } from '../../../core/http/route.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { open, ping } from '../http/harness.ts'

interface Tree {
  readonly name: string
  readonly children: readonly Tree[]
}
const Tree: v.GenericSchema<Tree> = v.object({ name: v.string(), children: v.array(v.lazy(() => Tree)) })
const routes: readonly AnyRoute[] = [
  ping,
  defineRoute({
    method: 'POST',
    path: '/api/trees/:id',
    summary: 'Grow',
    description: 'Grows a tree.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    status: 201,
    params: v.object({ id: v.pipe(v.string(), v.uuid()) }),
    query: v.object({
      limit: v.optional(v.pipe(v.string(), v.transform(Number)), '5'),
      sort: v.picklist(['up', 'down']),
    }),
    body: v.object({ tree: Tree, note: v.nullable(v.string()), key: secret(v.string()) }),
    returns: Tree,
    errors: [
      'tree_not_found',
      defineError('key_not_found', { status: 404, format: 'flat', meaning: 'no key' }),
      'conflict',
    ],
    example: {
      body: { tree: { name: 'a', children: [] }, note: null, key: 'k' },
      returns: { name: 'a', children: [] },
    },
    handle: ({ body }) => body.tree,
  }),
  defineRoute({
    method: 'GET',
    path: '/api/trees/:name',
    summary: 'Read',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: v.object({ name: v.string() }),
    returns: v.unknown(),
    streams: v.object({ t: v.number() }),
    handle: () => ({}),
  }),
  defineRoute({
    method: 'PUT',
    path: '/api/models/**:id',
    summary: 'Raw',
    auth: 'signed',
    effect: 'conversation',
    cost: 2,
    body: rawBody(10),
    returns: v.unknown(),
    produces: 'text/plain',
    handle: () => ({}),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/trees/:id',
    summary: 'Fell',
    auth: 'bearer',
    effect: 'conversation',
    cost: 2,
    status: 204,
    returns: v.undefined(),
    handle: () => undefined,
  }),
  defineRoute({
    method: 'GET',
    path: '/api/trees_by_id',
    summary: 'Near clash',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: v.unknown(),
    renderError: () => ({}),
    handle: () => ({}),
  }),
]
type Json = Record<string, unknown>
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** What is not OpenAPI 3.0 about a document; empty when nothing is. */
function faults(document: Json): string[] {
  const wrong: string[] = []
  const at = (path: string): unknown =>
    path
      .slice(2)
      .split('/')
      .reduce<unknown>((node, key) => (isJson(node) ? node[key.replace('~1', '/')] : undefined), document)
  const ids = new Set<string>()
  const walk = (node: unknown, path: string): void => {
    if (Array.isArray(node)) {
      node.forEach((one, index) => walk(one, `${path}/${index}`))
      return
    }
    if (!isJson(node)) return
    if (typeof node['$ref'] === 'string') {
      if (at(node['$ref']) === undefined) wrong.push(`${path}: ${node['$ref']} leads nowhere`)
      if (Object.keys(node).length > 1) wrong.push(`${path}: a $ref has siblings`)
    }
    if (Array.isArray(node['type'])) wrong.push(`${path}: type is a list`)
    for (const key of ['$schema', '$defs', 'const', 'definitions', 'secret'])
      if (key in node && !path.endsWith('/properties') && !path.includes('/example'))
        wrong.push(`${path}: ${key} is not OpenAPI 3.0`)
    for (const [key, inner] of Object.entries(node)) walk(inner, `${path}/${key}`)
  }
  walk(document, '')
  if (document['openapi'] !== '3.0.3' || !isJson(document['info']) || typeof document['info']['version'] !== 'string')
    wrong.push('info')
  for (const [path, methods] of Object.entries(document['paths'] as Record<string, Record<string, Json>>)) {
    for (const [method, operation] of Object.entries(methods)) {
      const id = String(operation['operationId'])
      if (ids.has(id) || !/^\w+$/.test(id)) wrong.push(`${id} is not a unique id`)
      ids.add(id)
      const parameters = operation['parameters'] as { name: string; in: string; required: boolean; schema: unknown }[]
      const inPath = parameters
        .filter((one) => one.in === 'path')
        .map((one) => one.name)
        .sort()
      const wanted = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort()
      if (JSON.stringify(inPath) !== JSON.stringify(wanted) || parameters.some((one) => !isJson(one.schema)))
        wrong.push(`${method} ${path}: parameters`)
      const responses = operation['responses'] as Record<string, Json>
      if (
        Object.keys(responses).length === 0 ||
        Object.values(responses).some((one) => typeof one['description'] !== 'string')
      )
        wrong.push(`${method} ${path}: responses`)
      if (!Array.isArray(operation['security'])) wrong.push(`${method} ${path}: security`)
    }
  }
  const shapes = Object.keys(document['paths'] as Json).map((path) => path.replace(/\{\w+\}/g, '{}'))
  if (new Set(shapes).size !== shapes.length) wrong.push('two paths differ in parameter names only')
  return wrong
}
async function documentOf() {
  const socket = defineSocket({
    path: '/api/trees/:id/ws',
    summary: 'Watch',
    auth: 'bearer',
    cost: 5,
    effect: 'conversation',
    frameCost: 1,
    params: v.object({ id: v.string() }),
    accept: () => null,
    open() {},
    frame() {},
  })
  const { http } = await open(routes, { listen: false, sockets: [socket] })
  return {
    http,
    document: (await http.openapi()) as {
      paths: Record<string, Record<string, Json>>
      components: { schemas: Json }
      tags: unknown
    } & Json,
  }
}

test('the document is OpenAPI 3.0, and every reference leads somewhere', async () => {
  const { document } = await documentOf()
  expect(faults(document)).toEqual([])
  expect(Object.keys(document.paths)).toEqual([
    '/api/auth/ws-ticket',
    '/api/models/{id}',
    '/api/ping',
    '/api/trees/{id}',
    '/api/trees/{id}/ws',
    '/api/trees_by_id',
  ])
  expect(document.tags).toMatchObject([{ name: 'http' }, { name: 'plugin' }])
})

test('the check finds what is wrong', () => {
  expect(
    faults({
      openapi: '3.0.3',
      info: { version: '1' },
      paths: {
        '/a/{b}': {
          get: {
            operationId: 'x',
            parameters: [],
            responses: {},
            security: [],
            s: { $ref: '#/components/schemas/No' },
            t: { type: ['a'] },
          },
        },
      },
    }),
  ).toHaveLength(4)
})

test('a route is described as it behaves', async () => {
  const { document } = await documentOf()
  const grow = document.paths['/api/trees/{id}']?.['post'] as Json
  expect(grow).toMatchObject({
    summary: 'Grow',
    description: 'Grows a tree.',
    tags: ['plugin'],
    security: [{ bearer: [] }, { api_key: [] }],
    parameters: [
      { name: 'id', in: 'path', required: true, schema: { format: 'uuid' } },
      { name: 'limit', in: 'query', required: false },
      { name: 'sort', in: 'query', required: true, schema: { enum: ['up', 'down'] } },
    ],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          example: { note: null },
          schema: { properties: { note: { type: 'string', nullable: true }, key: { writeOnly: true } } },
        },
      },
    },
  })
  expect(Object.keys(grow['responses'] as Json)).toEqual([
    '201',
    '400',
    '401',
    '403',
    '404',
    '408',
    '409',
    '413',
    '429',
    '431',
    '500',
    '503',
  ])
  expect((grow['responses'] as Record<string, Json>)['404']).toMatchObject({
    content: {
      'application/json': {
        schema: { oneOf: [{ $ref: '#/components/schemas/Error' }, { $ref: '#/components/schemas/FlatError' }] },
      },
    },
  })
  expect(document.paths['/api/ping']?.['get']?.['security']).toEqual([])
  expect(document.paths['/api/trees/{id}']?.['get']).toMatchObject({
    responses: { 200: { content: { 'text/event-stream': {} } } },
  })
})

test('the document follows the live routes', async () => {
  const { http } = await documentOf()
  const late = new Scope('late')
  http.forPlugin(late).add({ ...ping, path: '/api/late' })
  const paths = async () => Object.keys(((await http.openapi()) as { paths: object }).paths)
  expect(await paths()).toContain('/api/late')
  expect(await http.openapi()).toBe(await http.openapi())
  await late.close(10)
  expect(await paths()).not.toContain('/api/late')
})
