import { expect, it } from 'vitest'
import { channelsPage } from '../../support/channels-page.ts'

it('the page that compares the channels is made from the adapters and their tests', async () => {
  const page = await channelsPage()
  await expect(page).toMatchFileSnapshot('../../../docs/channels/compared.md')
})
