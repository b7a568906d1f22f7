import { randomUUID } from 'node:crypto'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

// The mandatory tests of the A2A TCK for protocol 0.3 that are about keys, the protocol and its methods, by their names.

const key = 'a2a-owner-key-canary'
const withKey = { authorization: `Bearer ${key}` }
let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/a2a', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'webhooks'],
    fetch: async () => new Response('', { status: 204 }),
    config: { api_key: key, a2a: { public_cards: true }, rate_limit: { tokens_per_minute: 1_000_000 } },
  })
  const made = await test.request('POST', '/api/agents', { manifest_toml: 'name = "echo"' }, withKey)
  expect(made.status).toBe(201)
})
afterAll(() => test[Symbol.asyncDispose]())

interface Call {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}
async function post(body: unknown, headers: Readonly<Record<string, string>> = withKey): Promise<Call> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const init = { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } }
  const answer = await test.fetch('/a2a', init)
  return { status: answer.status, headers: answer.headers, body: await answer.json() }
}
const request = (method: unknown, params: unknown = {}, id: unknown = 'r-1') => ({ jsonrpc: '2.0', id, method, params })
const call = async (method: unknown, params?: unknown): Promise<Json> => (await post(request(method, params))).body
const said = (text: string) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] },
})
const shownCard = async (path = '/.well-known/agent-card.json'): Promise<Json> =>
  (await (await test.fetch(path)).json()) as Json

type Row = readonly [names: string, what: string, check: () => Promise<void>]
const authentication: readonly Row[] = [
  [
    'test_authentication_required_when_declared test_security_error_response_compliance test_authentication_challenge_headers',
    'a request without the key is a 401 that says how to prove oneself',
    async () => {
      for (const method of ['tasks/get', 'message/send', 'message/stream', 'no/method']) {
        const { status, headers, body } = await post(request(method, said('x')), {})
        expect([method, status, headers.get('www-authenticate')]).toEqual([
          method,
          401,
          expect.stringMatching(/Bearer/),
        ])
        expect(body).not.toHaveProperty('result')
      }
    },
  ],
  [
    'test_invalid_credentials_rejected test_invalid_authentication_handling test_extended_agent_card_invalid_authentication',
    'wrong credentials of each declared scheme are a 401',
    async () => {
      for (const headers of [
        { authorization: 'Bearer wrong' },
        { 'x-api-key': 'wrong' },
        { authorization: `Basic ${Buffer.from(`svc:wrong`).toString('base64')}` },
      ])
        for (const method of ['tasks/get', 'agent/getAuthenticatedExtendedCard'])
          expect([headers, (await post(request(method, { id: 'x' }), headers)).status]).toEqual([headers, 401])
    },
  ],
  [
    'test_authentication_scheme_consistency test_security_scheme_structure_compliance test_security_scheme_consistency',
    'each scheme of the card is one that is accepted',
    async () => {
      const { securitySchemes, security } = await shownCard()
      expect(security.flatMap(Object.keys).toSorted()).toEqual(Object.keys(securitySchemes).toSorted())
      expect(securitySchemes).toEqual({
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      })
      for (const headers of [withKey, { 'x-api-key': key }])
        expect((await post(request('tasks/get', { id: 'none' }), headers)).body.error.code).toBe(-32001)
    },
  ],
  [
    'test_extended_agent_card_authentication_required test_authenticated_extended_card_without_auth test_authenticated_extended_card_with_auth test_extended_card_access_controls',
    'the extended card needs the key, and tells more than the public one',
    async () => {
      const shown = await shownCard()
      expect(shown.supportsAuthenticatedExtendedCard).toBe(true)
      const method = 'agent/getAuthenticatedExtendedCard'
      expect((await post(request(method), {})).status).toBe(401)
      const { result } = await call(method)
      expect(result.skills.length).toBeGreaterThan(shown.skills.length)
    },
  ],
  [
    'test_public_agent_card_access_control test_agent_card_access_equivalence test_sensitive_information_protection',
    'the public card is the same at each address, and has no secret',
    async () => {
      const shown = await shownCard()
      expect(await shownCard('/a2a/.well-known/agent-card.json')).toEqual(shown)
      expect(JSON.stringify(shown)).not.toMatch(/canary|password|secret|private[_-]?key/i)
      expect(shown.skills.map(({ id }: Json) => id)).toEqual(['conversation'])
    },
  ],
]
const violations: readonly Row[] = [
  [
    'test_duplicate_request_ids',
    'two requests with one id are two requests',
    async () => {
      const [one, two] = [await call('message/send', said('one')), await call('message/send', said('two'))]
      expect([one.id, two.id]).toEqual(['r-1', 'r-1'])
      expect(one.result.id).not.toBe(two.result.id)
    },
  ],
  [
    'test_invalid_jsonrpc_version test_missing_method_field test_raw_invalid_json',
    'what is no request of JSON-RPC 2.0 is told so, with its id',
    async () => {
      const bodies: readonly (readonly [unknown, number, unknown])[] = [
        [{ ...request('message/send', said('x')), jsonrpc: '1.0' }, -32600, 'r-1'],
        [{ jsonrpc: '2.0', id: 'r-1', params: said('x') }, -32600, 'r-1'],
        ['{"jsonrpc": "2.0", "method": "message/send", "params": {"unclosed": true', -32700, null],
        [request('message/send', said('x'), 1.5), -32600, null],
        [request(7, said('x')), -32600, 'r-1'],
      ]
      for (const [body, code, id] of bodies)
        expect([body, (await post(body)).body]).toMatchObject([body, { jsonrpc: '2.0', id, error: { code } }])
    },
  ],
  [
    'test_invalid_method_error_validation test_error_consistency_across_methods test_error_response_completeness',
    'a method that is not there is -32601, whatever its name',
    async () => {
      for (const method of ['', ' ', 'message', 'MESSAGE/SEND', 'tasks/get/', '__proto__', 'constructor', '\u{1F600}'])
        expect([method, await call(method)]).toEqual([
          method,
          { jsonrpc: '2.0', id: 'r-1', error: { code: -32601, message: expect.stringContaining('not found') } },
        ])
    },
  ],
  [
    'test_invalid_params_error_validation',
    'parameters of another shape are -32602',
    async () => {
      const params: readonly (readonly [string, unknown])[] = [
        ['message/send', {}],
        ['message/send', { message: null }],
        ['message/send', { message: { ...said('x').message, parts: [] } }],
        ['message/send', { message: { ...said('x').message, messageId: '' } }],
        ['message/send', [said('x')]],
        ['tasks/get', {}],
        ['tasks/get', { id: 7 }],
        ['tasks/get', { id: 'x', historyLength: -1 }],
        ['tasks/cancel', { id: null }],
      ]
      for (const [method, given] of params)
        expect([method, given, (await call(method, given)).error?.code]).toEqual([method, given, -32602])
    },
  ],
  [
    'test_nonexistent_resource_error_validation',
    'a task that is not there is -32001 for every method about one',
    async () => {
      const id = randomUUID()
      for (const method of ['tasks/get', 'tasks/cancel', 'tasks/resubscribe', 'tasks/pushNotificationConfig/list'])
        expect([method, (await call(method, { id })).error.code]).toEqual([method, -32001])
    },
  ],
]
const methods: readonly Row[] = [
  [
    'test_core_method_mapping_compliance test_required_method_availability test_transport_specific_method_naming test_authenticated_extended_card_method_exists',
    'each method of the protocol is there under its name',
    async () => {
      const id = (await call('message/send', said('map'))).result.id
      const push = { taskId: id, pushNotificationConfig: { id: 'p', url: 'https://hooks.example.com/', token: 't' } }
      const given: readonly (readonly [string, unknown])[] = [
        ['message/send', said('again')],
        ['tasks/get', { id }],
        ['tasks/pushNotificationConfig/set', push],
        ['tasks/pushNotificationConfig/get', { id, pushNotificationConfigId: 'p' }],
        ['tasks/pushNotificationConfig/list', { id }],
        ['tasks/pushNotificationConfig/delete', { id, pushNotificationConfigId: 'p' }],
        ['agent/getAuthenticatedExtendedCard', {}],
      ]
      for (const [method, params] of given)
        expect([method, await call(method, params)]).toEqual([
          method,
          expect.not.objectContaining({ error: expect.anything() }),
        ])
      expect((await call('tasks/cancel', { id })).error.code, 'it has ended').toBe(-32002)
      expect((await call('tasks/resubscribe', { id })).error.code, 'it has ended').toBe(-32004)
    },
  ],
  [
    'test_jsonrpc_specific_features test_transport_compliance_validation test_unsupported_operation_error_32004',
    'a message for a task that has ended is -32004',
    async () => {
      const { id: taskId, contextId } = (await call('message/send', said('once'))).result
      const { message } = said('more')
      expect((await call('message/send', { message: { ...message, taskId, contextId } })).error.code).toBe(-32004)
      const next = await call('message/send', { message: { ...message, contextId } })
      expect(next.result).toMatchObject({ contextId, status: { state: 'completed' } })
    },
  ],
  [
    'test_concurrent_operation_equivalence',
    'requests at the same time are answered each with its own task',
    async () => {
      const texts = ['a', 'b', 'c', 'd']
      const all = await Promise.all(texts.map((text) => post(request('message/send', said(text), text))))
      expect(all.map(({ body }) => body.id)).toEqual(texts)
      expect(new Set(all.map(({ body }) => body.result.id)).size).toBe(texts.length)
    },
  ],
]
const groups = { authentication, violations, methods }
describe.each(Object.entries(groups))('0.3: %s', (_, rows) => {
  it.each(rows)('%s: %s', (_names, _what, check) => check())
})
