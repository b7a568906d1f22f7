import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from './sources.ts'

/** Each has been a hole in a system of this kind, or is a classic of its class (security facts 4). */
const threats = [
  'Auth forgotten on one route, or done after the work',
  'Path tricks around the check',
  'Unauthenticated loopback + DNS rebinding',
  'Key unset and bound wide',
  'CSRF by simple request',
  'CORS leak',
  'Cross-site WebSocket hijack',
  'Gateway URL from query string',
  'Brute force, incl. loopback and WS',
  'Timing oracle on key',
  'Header parsing',
  'Method/override tricks',
  'Request smuggling',
  'JSON depth bomb',
  'Prototype pollution',
  'TOML bombs',
  'Body size',
  'Decompression bomb',
  'Multipart abuse',
  'ReDoS in globs and conditions',
  'Template recursion',
  'Cyclic/huge structures',
  'Tool schema recursion',
  'Slowloris and slow consumers',
  'WS abuse',
  'Header/log injection',
  'Stored XSS through uploads',
  'SSRF literals',
  'SSRF redirect',
  'SSRF DNS rebinding / TOCTOU',
  'Provider key exfiltration by URL override',
  'Traversal',
  'Zip-slip / hostile archive',
  'Hostile restore',
  'Backup contains secrets',
  'Secret leakage anywhere',
  'Error detail',
  'Prompt injection through channels',
  'Indirect injection -> exfil by image',
  'Memory poisoning',
  'MCP stdio command injection',
  'Plugin/skill RCE boundary',
  'Inbound hook signature and replay',
  'Outbound webhook forging/replay',
  'OIDC pitfalls',
  'Introspect / userinfo as oracle',
  'Device pairing',
  'Approval abuse',
  'BOLA/BOPLA',
  'Rate-limit bypass',
  'Audit tampering by DB edit',
  'Budget bypass',
  'OpenAI-compat fallback',
  'Slash commands from content',
  'MCP/A2A endpoint abuse',
  'Supply chain',
  'Process hygiene',
]

const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.startsWith('architecture'))
  .map((name) => readFileSync(join(root, 'test', name), 'utf8'))
const isNamed = (threat: string): boolean => {
  const name = threat.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)
  // The name of a test, or of one of many: `it('…'`, `it('…: …'`, `it.each([…])('…: %s'`. One that is left out does
  // not count.
  const call = new RegExp(String.raw`^[ \t]*(?:(?:it|test)(?:\.each\(.*\))?|\]\))\((['"\`])${name}(?:\1|: )`, 'm')
  return tests.some((text) => call.test(text))
}

describe('threats', () => {
  it('are all there', () => {
    expect(new Set(threats).size).toBe(57)
  })
  it.each(threats)('has a test named after it: %s', (threat) => {
    expect(isNamed(threat)).toBe(true)
  })
})
