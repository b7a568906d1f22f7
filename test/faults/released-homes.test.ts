import { rm } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import { askAll, openReleased, releasedHomes } from '../support/released-home.ts'

it.each(await releasedHomes())('the home of version %s starts, and nothing in it is lost', async (version) => {
  const { home, answers } = await openReleased(version)
  try {
    await using host = await startHost({ home, listen: false })
    expect(host.app.daemon.plugins().filter(({ state }) => state !== 'loaded')).toEqual([])
    expect(await askAll(host)).toMatchObject(answers)
    expect((await host.json('GET', '/api/audit/verify')).body).toMatchObject({ status: 'valid' })
  } finally {
    await rm(home, { recursive: true })
  }
})
