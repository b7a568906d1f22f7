import { expect, it } from 'vitest'
import { renderReport, shownReport } from '../../../plugins/migrate/report.ts'
import type { Report } from '../../../plugins/migrate/report.ts'

const empty: Report = {
  runId: 'r',
  type: 'openclaw',
  path: '/home/ada/.openclaw',
  version: 'openclaw.json',
  isDryRun: false,
  startedAt: '2026-11-01T00:00:00.000Z',
  endedAt: '2026-11-01T00:00:01.000Z',
  error: undefined,
  imported: [],
  unchanged: [],
  left: [],
  warnings: [],
}
const render = (more: Partial<Report>): string =>
  renderReport(shownReport({ ...empty, ...more }, { hide: (text) => text }))

it('a command in a reason is code, and what a source wrote is neither Markdown nor a sign of control', () => {
  const left = [{ kind: 'channel' as const, name: 'tele`gram', reason: 'do `svc channels enable my_bot` then *go*' }]
  expect(render({ left })).toContain('- Channels: `tele gram`: do `svc channels enable my_bot` then \\*go\\*\n')
  const imported = [
    { kind: 'agent' as const, name: 'my_agent [x](y)', destination: 'one`two' },
    { kind: 'session' as const, name: 'gpj\u202e.exe\u001b[2J\n# title', destination: '_a_' },
  ]
  const markdown = render({ imported, warnings: ['right\u2066to left'], error: 'b\u202ead' })
  expect(markdown).toContain('- my_agent \\[x\\](y) → one\\`two\n')
  expect(markdown).toContain('- gpj\\\\u202e.exe \\[2J # title → \\_a\\_\n')
  expect(markdown).toContain('right\\\\u2066to left')
  for (const sign of '\u202e\u2066\u001b') expect(markdown).not.toContain(sign)
})
