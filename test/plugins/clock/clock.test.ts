import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const plugins = ['clock', fileURLToPath(new URL('../../fixtures/tool-door', import.meta.url))]
const call = async (host: TestHost, args: unknown): Promise<{ text: string; failed: boolean }> =>
  (await host.json('POST', '/test/tools/system_time', { agent_id: 'a', args })).body

it('system_time tells UTC, local time and the zone', async () => {
  await using host = await startHost({ plugins, memory: true })
  const before = Date.now()
  const { text, failed } = await call(host, {})
  const reading = JSON.parse(text)
  expect(failed).toBe(false)
  expect(Date.parse(reading.utc)).toBeGreaterThanOrEqual(before)
  expect(Math.abs(Date.parse(reading.local) - Date.parse(reading.utc))).toBeLessThan(1000)
  expect(reading.timezone).toBe(Intl.DateTimeFormat().resolvedOptions().timeZone)
})

it('system_time answers for a zone that is named, and refuses one nobody knows', async () => {
  await using host = await startHost({ plugins, memory: true })
  expect(JSON.parse((await call(host, { tz: 'Asia/Kolkata' })).text)).toMatchObject({
    timezone: 'Asia/Kolkata',
    local: expect.stringMatching(/\+05:30$/),
  })
  expect(await call(host, { tz: 'Mars/Olympus' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('Mars/Olympus'),
  })
  expect(await call(host, { tz: 5 })).toMatchObject({ failed: true })
})

it('the configured zone is the local one', async () => {
  await using host = await startHost({
    plugins,
    memory: true,
    config: { plugins: { clock: { timezone: 'Asia/Tokyo' } } },
  })
  expect(JSON.parse((await call(host, {})).text).timezone).toBe('Asia/Tokyo')
})

it('a configured zone nobody knows stops the plugin, not the daemon', async () => {
  await using host = await startHost({
    plugins,
    memory: true,
    config: { plugins: { clock: { timezone: 'Mars/Olympus' } } },
  })
  const clock = host.app.daemon.plugins().find((plugin) => plugin.name === 'clock')
  expect(clock).toMatchObject({ state: 'failed', error: expect.stringContaining('Mars/Olympus') })
  host.defects()
})
