import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Identity } from '../../../plugins/peers/identity.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import { Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

let browser: Browser
let node: Node
let friend: Node
beforeAll(async () => {
  ;[browser, friend] = await Promise.all([launchBrowser(), Node.start('friend', { node_name: '<b>Friend</b>' })])
  const peers = [`friend@127.0.0.1:${await friend.port()}`, '127.0.0.1:1']
  node = await Node.start('node', { peers, allow_unencrypted: true }, ['webchat', 'system', 'providers/builtin'])
  await friend.spawn('poet')
  await node.linked('friend', ({ agents }) => agents.length > 1)
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([node?.[Symbol.asyncDispose](), friend?.[Symbol.asyncDispose]()])
})

it('shows who is linked and how, pings, and forgets a key', async () => {
  const port = await node.port()
  const plain = await RawPeer.link(port, 'node', 'plain', { identity: new Identity(), encryption: 'off' })
  await node.linked('plain')
  await using tab = await openTab(browser, node.host.url, { path: '/pages/peers/peers/peers.html' })
  const { page } = tab
  const own = page.getByRole('region', { name: 'This daemon' })
  await own.getByText((await node.status()).identity_fingerprint).waitFor()
  await own.getByText(/127\.0\.0\.1:1: .*(refused|ECONNREFUSED|waiting|connecting)/i).waitFor()
  const card = page.getByRole('region', { name: 'friend', exact: true })
  await card.getByText('<b>Friend</b>').waitFor()
  await card.getByText('assistant, poet').waitFor()
  await card.getByText((await friend.status()).identity_fingerprint).waitFor()
  expect(await card.getByText('not encrypted').count()).toBe(0)
  const other = page.getByRole('region', { name: 'plain', exact: true })
  await other.getByText('not encrypted').waitFor()
  await card.getByRole('button', { name: 'Ping: friend' }).click()
  await page.getByText(/“friend” answered in [\d.]+ ms\./).waitFor()
  await other.getByRole('button', { name: 'Forget key: plain' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Forget the key of plain?').waitFor()
  await dialog.getByRole('button', { name: 'Forget key' }).click()
  await page.getByText('The key of “plain” is forgotten.').waitFor()
  await other.waitFor({ state: 'detached' })
  await plain.ended()
  expect((await node.peers()).map(({ node_id: id }) => id)).toEqual(['friend'])
  expect(tab.complaints).toEqual([])
})
