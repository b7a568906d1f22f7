import { expect, it } from 'vitest'
import { isNamed, namedHosts } from '../../../plugins/channels/connections/named-hosts.ts'

const hosts = namedHosts({
  base_url: 'https://Chat.local/api',
  relays: ['ws://10.0.0.1:7777', 'ircs://irc.local:6697'],
  api_hosts: ['Files.local'],
  token: 'secret',
  depth: 5,
})

it.each([
  ['wss://chat.local/socket', true],
  ['https://chat.local:443/x', true],
  ['https://chat.local:8443/x', false],
  ['http://chat.local/x', false],
  ['https://chat.local.example.org/x', false],
  ['http://10.0.0.1:7777/x', true],
  ['http://10.0.0.1/x', false],
  ['https://irc.local:6697/', true],
  ['http://files.local:99/x', true],
  ['file:///etc/hostname', false],
  ['no address', false],
  ['', false],
])('%s is named by the configuration: %s', (address, isIn) => {
  expect(isNamed(hosts, address)).toBe(isIn)
})
