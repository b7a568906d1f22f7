import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { API_VERSION } from '../../../core/host/api-version.ts'
import { isInRange } from '../../../core/host/version-range.ts'
import { startHost } from '../../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'

describe('a range of versions', () => {
  it.each([
    ['1', '1.4.2', true],
    ['1', '2.0.0', false],
    ['1.x', '1.4.2', true],
    ['1.4', '1.4.2', true],
    ['1.4', '1.5.0', false],
    ['=1.4.2', '1.4.2', true],
    ['^1.4.0', '1.9.0', true],
    ['^1.4.0', '1.3.9', false],
    ['^1.4.0', '2.0.0', false],
    ['^0.2.1', '0.2.9', true],
    ['^0.2.1', '0.3.0', false],
    ['^0.0.3', '0.0.4', false],
    ['~1.4', '1.4.9', true],
    ['~1.4.1', '1.4.0', false],
    ['~1', '1.9.0', true],
    ['>=1.2 <3', '2.9.9', true],
    ['>=1.2 <3', '3.0.0', false],
    ['>= 1.2 < 3', '1.1.0', false],
    ['>1', '1.9.0', false],
    ['>1', '2.0.0', true],
    ['<=1.4', '1.4.9', true],
    ['1 || 3', '3.1.0', true],
    ['1 || 3', '2.1.0', false],
    ['*', '7.0.0', true],
  ])('%s, of %s: %s', (range, version, expected) => {
    expect(isInRange(version, range)).toBe(expected)
  })
})

describe('the apiVersion of a plugin', () => {
  const load = async (apiVersion: string): Promise<string> => {
    await using folder = await temporaryFolder()
    await using host = await startHost({ plugins: [], memory: true, listen: false })
    const text = pluginText('aged', { members: `apiVersion: ${apiVersion},` })
    const plugin = await writePlugin(join(folder.path, 'aged'), text)
    return host.app.host.load(plugin).then(
      () => 'loaded',
      (error: unknown) => String(error),
    )
  }

  it.each([`'${API_VERSION}'`, `'1'`, `'^1.0.0'`, 'undefined'])('%s is loaded', async (range) => {
    expect(await load(range)).toBe('loaded')
  })

  it('another one is refused, and both are named', async () => {
    expect(await load(`'^2.1.0'`)).toContain(
      'apiVersion: the plugin "aged" is written for version ^2.1.0 of the plugin interface, ' +
        `and this daemon has ${API_VERSION}`,
    )
  })

  it.each([`'latest'`, '1'])('%s is no range, and what to write is said', async (range) => {
    expect(await load(range)).toContain('apiVersion: must be a range of versions, such as "1" or "^1.0.0"')
  })
})
