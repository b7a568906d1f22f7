import { describe, expect, it } from 'vitest'
import { clean } from '../../../plugins/audit/clean.ts'

describe('details of an audit entry', () => {
  it.each([
    ['key sk-proj-abcdefghijklmnop1234 used', 'key [secret] used'],
    ['Authorization: Bearer abcdefgh12345678', 'Authorization: Bearer [secret]'],
    ['password=hunter2secret&x=1', 'password=[secret]&x=1'],
    ['{"api_key": "abc123def"}', '{"api_key": "[secret]"}'],
    ['ghp_abcdefghijklmnopqrstuvwxyz0123456789', '[secret]'],
    ['xoxb-123456789-abcdef', '[secret]'],
    ['AKIAIOSFODNN7EXAMPLE', '[secret]'],
    ['postgres://me:hunter2@db/x', 'postgres://me:[secret]@db/x'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc', '[secret]'],
    ['-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----', '[secret]'],
  ])('masks the secret in %s', (text, expected) => {
    expect(clean(text)).toBe(expected)
  })

  it.each([
    'spawned assistant (builtin/offline)',
    'a token bucket of 6000 tokens',
    'https://example.com/path?x=1',
    'a1b2c3d4-0000-4000-8000-000000000000 reset its session',
  ])('leaves %s alone', (text) => {
    expect(clean(text)).toBe(text)
  })

  it('escapes what a terminal would obey', () => {
    expect(clean('a\nb\r\t\u001b[31mred\u0000\u202e\ud800')).toBe('a\\nb\\r\\t\\u001b[31mred\\u0000\\u202e\ufffd')
  })

  it('keeps at most 4 KiB of whole characters', () => {
    const cut = clean('👋'.repeat(3_000))
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(4_096)
    expect(cut).toMatch(/^(👋)+ \[…\]$/u)
    expect(clean('x'.repeat(4_096))).toHaveLength(4_096)
  })

  // A rule that grows with the square would need minutes here, and the time limit of a test ends it.
  it('cleans hostile text', () => {
    for (const text of [
      '-----BEGIN '.repeat(20_000),
      'token='.repeat(50_000),
      'eyJ'.repeat(100_000),
      `//${'a'.repeat(500_000)}`,
      `${'A'.repeat(500_000)} PRIVATE KEY`,
      'api_key   '.repeat(50_000),
    ])
      expect(Buffer.byteLength(clean(text))).toBeLessThanOrEqual(4_096)
  })
})
