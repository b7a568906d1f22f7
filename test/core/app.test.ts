import { describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'

describe('the daemon', () => {
  it('starts with every built-in plugin loaded', async () => {
    await using host = await startHost()
    expect(host.app.daemon.plugins().filter(({ state }) => state !== 'loaded').map(({ name, error }) => `${name}: ${error}`)).toEqual([])
    expect((await host.json('GET', '/api/health')).body).toMatchObject({ status: 'ok' })
  })
})
