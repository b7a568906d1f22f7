import { launchBrowser, openTab } from '../plugins/webchat/browser.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { expectText, measure } from './commands.ts'
import type { Daemon } from './commands.ts'

/** A server of one's own that speaks OpenAI's format, connected in the page. */
export async function connectModel({ url }: Daemon): Promise<void> {
  await using fake = await startFakeProvider({ models: ['my-model'] })
  await using browser = await launchBrowser()
  await using tab = await openTab(browser, url)
  const dialog = tab.page.getByRole('dialog')
  await measure('model in the page', {
    'open it, Connect a model': async () => {
      await tab.page.getByRole('button', { name: 'Connect a model' }).click()
      await dialog.getByLabel('Provider').selectOption({ label: 'vLLM (needs no key)' })
    },
    'give the address, test': async () => {
      await dialog.getByLabel('Address').fill(fake.url)
      await dialog.getByRole('button', { name: 'Test' }).click()
      await tab.page.getByRole('dialog', { name: 'vLLM answers' }).waitFor()
    },
    'choose the model': async () => {
      await dialog.getByLabel('Model').fill('my-model')
      await dialog.getByRole('button', { name: 'Use it' }).click()
      await tab.page.getByRole('heading', { name: 'my-model is connected' }).waitFor()
    },
    'its first answer': async () => expectText(await tab.say('hello'), 'Hello from the fake.'),
  })
}
