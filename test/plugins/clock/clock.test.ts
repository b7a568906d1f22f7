import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'

const clock = (timezone?: string): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/clock/', import.meta.url),
    builtIns: [],
    config: timezone === undefined ? {} : { plugins: { clock: { timezone } } },
  })

it('system_time tells UTC, local time and the zone', async () => {
  await using test = await clock()
  const before = Date.now()
  const { text, failed } = await test.callTool('system_time', {})
  const reading = JSON.parse(text)
  expect(failed).toBe(false)
  expect(Date.parse(reading.utc)).toBeGreaterThanOrEqual(before)
  expect(Math.abs(Date.parse(reading.local) - Date.parse(reading.utc))).toBeLessThan(1000)
  expect(reading.timezone).toBe(Intl.DateTimeFormat().resolvedOptions().timeZone)
})

it('system_time answers for a zone that is named, and refuses one nobody knows', async () => {
  await using test = await clock()
  expect(JSON.parse((await test.callTool('system_time', { tz: 'Asia/Kolkata' })).text)).toMatchObject({
    timezone: 'Asia/Kolkata',
    local: expect.stringMatching(/\+05:30$/),
  })
  expect(await test.callTool('system_time', { tz: 'Mars/Olympus' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('Mars/Olympus'),
  })
  expect(await test.callTool('system_time', { tz: 5 })).toMatchObject({ failed: true })
})

it('the configured zone is the local one', async () => {
  await using test = await clock('Asia/Tokyo')
  expect(JSON.parse((await test.callTool('system_time', {})).text).timezone).toBe('Asia/Tokyo')
})

it('a configured zone nobody knows stops the plugin, not the daemon', async () => {
  await expect(clock('Mars/Olympus')).rejects.toThrow(/clock is not loaded: .*Mars\/Olympus/)
  await using host = await startHost({
    plugins: ['clock'],
    memory: true,
    listen: false,
    config: { plugins: { clock: { timezone: 'Mars/Olympus' } } },
  })
  const status = host.app.daemon.plugins().find((plugin) => plugin.name === 'clock')
  expect(status).toMatchObject({ state: 'failed', error: expect.stringContaining('Mars/Olympus') })
  host.defects()
})
