import { describe, expect, it } from 'vitest'
import { hooksPage, readHooks } from '../support/hooks-page.ts'
import { findUndocumented, readSdk, sdkPage } from '../support/sdk-page.ts'

describe('the reference for authors of plugins', () => {
  it('explains every name and field of svc/sdk in its doc comment', async () => {
    expect(findUndocumented(await readSdk())).toEqual([])
  })

  it('is a page with every name of svc/sdk', async () => {
    await expect(await sdkPage()).toMatchFileSnapshot('../../docs/sdk.md')
  })

  it('explains every hook in its doc comment, each with an id of its own', () => {
    const hooks = readHooks()
    expect(hooks.length).toBeGreaterThan(25)
    expect(hooks.filter(({ doc }) => doc === '').map(({ id }) => id)).toEqual([])
    expect(new Set(hooks.map(({ id }) => id)).size).toBe(hooks.length)
  })

  it('is a page with every hook', async () => {
    await expect(hooksPage()).toMatchFileSnapshot('../../docs/hooks.md')
  })
})
