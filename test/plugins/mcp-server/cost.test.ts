import { expect, test } from 'vitest'
import { costOfBody } from '../../../plugins/mcp-server/http/message.ts'
import { rpc } from './stage.ts'

const bytes = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
const call = (name: unknown, args: object = {}): object => rpc('tools/call', { name, arguments: args })

test.each([
  ['a list', rpc('tools/list'), 0],
  ['a tool', call('system_time'), 1],
  ['a tool that is told of an agent', call('system_time', { text: '"svc_agent_x"' }), 1],
  ['a resource that is called like a call', rpc('resources/read', { uri: 'tools/call', name: 'svc_agent_x' }), 0],
  ['an agent', call('svc_agent_x'), 28],
  ['a workflow', call('svc_workflow_x'), 28],
  ['an agent in escapes', '{"method":"tools\\/call","params":{"name":"svc\\u005fagent_x"}}', 28],
  ['a batch', [call('svc_agent_x'), call('system_time'), rpc('ping')], 29],
  ['broken JSON', '{"method":"tools/call"', 0],
  ['a call without params', { method: 'tools/call' }, 1],
])('%s costs what it asks for', (_, body, cost) => {
  expect(costOfBody(bytes(body), true)).toBe(cost)
})

test('a program behind the daemon has no agents, whatever its tools are called', () => {
  expect(costOfBody(bytes(call('svc_agent_x')), false)).toBe(1)
})
