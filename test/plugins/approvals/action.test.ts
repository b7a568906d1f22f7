import { describe, expect, it } from 'vitest'
import { actionHash, summarise } from '../../../plugins/approvals/action.ts'
import { policyOf } from '../../../plugins/approvals/policy.ts'
import { isHarmful, isRisky, riskOf } from '../../../plugins/approvals/risk.ts'
import type { Agent } from '../../../plugins/agents/contract.ts'

describe('the hash of an action', () => {
  it('does not depend on the order of keys, at any depth', () => {
    expect(actionHash('t', { a: 1, b: { c: [1, { d: 2, e: 3 }], f: null } })).toBe(
      actionHash('t', { b: { f: null, c: [1, { e: 3, d: 2 }] }, a: 1 }),
    )
  })
  it.each([
    ['another tool', 'u', { a: 1 }],
    ['another value', 't', { a: 2 }],
    ['another type', 't', { a: '1' }],
    ['another key', 't', { b: 1 }],
    ['one key more', 't', { a: 1, b: null }],
    ['a list instead', 't', [1]],
    ['text that looks like it', 't', '{"a":1}'],
  ])('differs for %s', (_, tool, args) => {
    expect(actionHash(tool, args)).not.toBe(actionHash('t', { a: 1 }))
  })
  it('differs for lists in another order', () => {
    expect(actionHash('t', [1, 2])).not.toBe(actionHash('t', [2, 1]))
  })
  it('is SHA-256 over the tool, a NUL and the arguments with sorted keys', () => {
    expect(actionHash('t', { b: 1, a: 'x' })).toBe('6be0d9194785e161c0d555490a366827b80b131626341a3947ae720b5252fd11')
  })
})

describe('the line that says what will be done', () => {
  it('is the command where there is nothing else to say', () => {
    expect(summarise('shell_exec', { command: 'ls -l' })).toBe('shell_exec ls -l')
  })
  it('leaves out nothing when there is', () => {
    expect(summarise('shell_exec', { command: 'ls', timeout_seconds: 5 })).toBe(
      'shell_exec {"command":"ls","timeout_seconds":5}',
    )
  })
  it('shows what would hide or turn the line around', () => {
    expect(summarise('shell_exec', { command: 'rm -rf /\u202e\u200b\u{e0101}\n# harmless\u001b[2K' })).toBe(
      String.raw`shell_exec rm -rf /\u{202e}\u{200b}\u{e0101}\u{a}# harmless\u{1b}[2K`,
    )
  })
  it('is cut to 512 characters and never within one', () => {
    const text = summarise('t', { command: '😀'.repeat(600) })
    expect(text.length).toBeLessThanOrEqual(512)
    expect(text.isWellFormed()).toBe(true)
    expect(text.endsWith('…')).toBe(true)
  })
})

describe('risk', () => {
  it.each([
    ['shell_exec', 'execute', 'critical'],
    ['process_start', 'execute', 'critical'],
    ['file_write', 'write', 'high'],
    ['file_delete', 'write', 'high'],
    ['apply_patch', 'write', 'high'],
    ['mcp_github_list', 'read', 'medium'],
    ['mcp_github_close', 'write', 'high'],
    ['mcp_github_close', undefined, 'high'],
    ['web_fetch', 'read', 'medium'],
    ['browser_navigate', 'execute', 'medium'],
    ['agent_spawn', 'execute', 'medium'],
    ['kv_set', 'write', 'low'],
    ['mark', 'execute', 'high'],
    ['constructor', 'read', 'low'],
  ] as const)('of %s (%s) is %s', (tool, declared, risk) => {
    expect(riskOf(tool, declared)).toBe(risk)
  })
  it('asks about programs, other systems and what the operator lists, not about a file of its own', () => {
    const asks = (tool: string, declared: 'read' | 'write' | 'execute') =>
      isRisky(tool, declared, ['file_delete', 'skill_evolve_*'])
    expect(['shell_exec', 'mark', 'mcp_x_y'].map((tool) => asks(tool, 'execute'))).toEqual([true, true, true])
    expect(['file_delete', 'skill_evolve_patch', 'file_write', 'kv_set'].map((tool) => asks(tool, 'write'))).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect([asks('mcp_x_y', 'read'), asks('web_fetch', 'read'), asks('file_read', 'read')]).toEqual([
      false,
      false,
      false,
    ])
    expect(asks('mcp_x_y', 'write')).toBe(true)
  })
})

it('whatever a foreign tool declares, it is asked for in a turn that may follow injected instructions', () => {
  expect([isHarmful('mcp_x_y', 'read'), isHarmful('web_fetch', 'read')]).toEqual([true, false])
})

describe('the policy of an agent', () => {
  const agent = (metadata: Record<string, unknown> = {}) => ({
    id: 'i',
    name: 'n',
    manifest: { metadata } as unknown as Agent['manifest'],
  })
  const made = { parent_agent_id: 'p' }
  it('is the global one unless the operator says otherwise, an id before a name', () => {
    expect(policyOf(agent(), { policy: 'risky', agents: {} })).toBe('risky')
    expect(policyOf(agent(), { policy: 'risky', agents: { n: 'never' } })).toBe('never')
    expect(policyOf(agent(), { policy: 'risky', agents: { n: 'never', i: 'always' } })).toBe('always')
  })
  it('may be in its manifest, which makes what is configured for it stricter at most', () => {
    expect(policyOf(agent({ approval: 'never' }), { policy: 'risky', agents: {} })).toBe('never')
    expect(policyOf(agent({ approval: 'always' }), { policy: 'risky', agents: { n: 'never' } })).toBe('always')
    expect(policyOf(agent({ approval: 'never' }), { policy: 'risky', agents: { n: 'always' } })).toBe('always')
    expect(policyOf(agent({ approval: 7 }), { policy: 'risky', agents: {} })).toBe('risky')
  })
  it('is not made looser by what another agent wrote', () => {
    expect(policyOf(agent({ ...made, approval: 'never' }), { policy: 'risky', agents: {} })).toBe('risky')
    expect(policyOf(agent({ ...made, approval: 'always' }), { policy: 'risky', agents: {} })).toBe('always')
    expect(policyOf(agent(made), { policy: 'risky', agents: { n: 'never' } })).toBe('risky')
    expect(policyOf(agent(made), { policy: 'risky', agents: { n: 'always' } })).toBe('always')
    expect(policyOf(agent(made), { policy: 'risky', agents: { i: 'never' } })).toBe('never')
  })
})
