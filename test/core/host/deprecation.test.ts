import * as v from 'valibot'
import { expect, it } from 'vitest'
import { definePlugin } from '../../../core/host/define.ts'
import type { AnyPlugin } from '../../../core/host/define.ts'
import { DeprecationWarnings } from '../../../core/host/deprecation.ts'
import { createLog } from '../../../core/log/log.ts'

it('warns once for each plugin, with the replacement, and only of what it uses', () => {
  const lines: string[] = []
  const log = createLog({ level: 'warn', colored: false, write: (line) => void lines.push(line) })
  const old = {
    what: 'outbound: "operator"',
    since: '1.1.0',
    replacement: 'uses.hosts',
    isUsed: ({ outbound }: AnyPlugin) => outbound !== undefined,
  }
  const warnings = new DeprecationWarnings(log, [old])
  const plugin = (name: string, outbound?: 'operator'): AnyPlugin =>
    definePlugin({ name, version: '1.0.0', config: v.object({}), ...(outbound && { outbound }), setup: () => ({}) })
  for (const one of [plugin('old', 'operator'), plugin('old', 'operator'), plugin('new'), plugin('other', 'operator')])
    warnings.check(one)
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('plugin "old" uses outbound: "operator": it is deprecated since 1.1.0')
  expect(lines[0]).toContain('goes with version 2.0.0; use uses.hosts')
  expect(lines[1]).toContain('plugin "other"')
})
