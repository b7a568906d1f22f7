import { describe, expect, it } from 'vitest'
import { classify, inRange, readRange } from '../../../core/net/address.ts'
import type { AddressKind } from '../../../core/net/address.ts'

const literals: readonly (readonly [AddressKind, readonly string[]])[] = [
  [
    'public',
    [
      '1.1.1.1',
      '8.8.8.8',
      '9.255.255.255',
      '11.0.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '192.167.255.255',
      '198.17.255.255',
      '198.20.0.0',
      '223.255.255.255',
      '2606:4700:4700::1111',
      '2a00:1450::1',
      '::ffff:8.8.8.8',
      '::8.8.8.8',
      '64:ff9b::808:808',
      '2002:808:808::1',
      '2001:4860:4860::8888',
    ],
  ],
  [
    'loopback',
    [
      '127.0.0.1',
      '127.255.255.254',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::127.0.0.1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '::ffff:0:127.0.0.1',
      '2001:470::5efe:127.0.0.1',
      '0:0:0:0:0:0:0:1',
    ],
  ],
  [
    'private',
    [
      '10.0.0.1',
      '10.255.255.255',
      '100.64.0.1',
      '100.127.255.255',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      'fc00::1',
      'fdff::1',
      '::ffff:10.0.0.1',
      '::ffff:a00:1',
      '::10.0.0.1',
      '64:ff9b::a00:1',
      '2002:c0a8:101::1',
      '2606:4700::200:5efe:10.1.2.3',
    ],
  ],
  [
    'reserved',
    [
      '0.0.0.0',
      '0.1.2.3',
      '169.254.0.1',
      '192.0.0.1',
      '192.0.2.1',
      '192.88.99.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '239.255.255.255',
      '240.0.0.1',
      '255.255.255.255',
      '::',
      'fe80::1',
      'febf::1',
      'fec0::1',
      'ff02::1',
      '2001:db8::1',
      '3fff::1',
      '100::1',
      '::ffff:0.0.0.0',
      '4000::1',
      'fe80::1%eth0',
      '2001:0:0808:0808::',
      'localhost',
      '',
      '1.2.3',
      '01.2.3.4',
      '64:ff9b:1:7f00:0:100::',
      '64:ff9b:1::127.0.0.1',
    ],
  ],
  [
    'metadata',
    [
      '169.254.169.254',
      '169.254.170.2',
      'fd00:ec2::254',
      '100.100.100.200',
      '192.0.0.192',
      '168.63.129.16',
      '::ffff:169.254.169.254',
      '::ffff:a9fe:a9fe',
      '::169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '2002:a9fe:a9fe::',
      '64:ff9b:1::a9fe:a9fe',
    ],
  ],
]

describe('the kind of an address', () => {
  for (const [kind, addresses] of literals) {
    for (const address of addresses)
      it(`${address || 'nothing'} is ${kind}`, () => {
        expect(classify(address)).toBe(kind)
      })
  }
  it('a Teredo address is what its client is', () => {
    // The client 127.0.0.1 is written inverted, the server 8.8.8.8 in the open.
    expect(classify('2001:0:808:808:0:0:80ff:fffe')).toBe('loopback')
  })
})

describe('ranges', () => {
  it('hold what lies in them', () => {
    const range = readRange('10.1.0.0/16')
    expect(range && inRange('10.1.2.3', range)).toBe(true)
    expect(range && inRange('10.2.0.1', range)).toBe(false)
    expect(range && inRange('::ffff:10.1.2.3', range)).toBe(true)
    expect(range && inRange('fd00::1', range)).toBe(false)
  })
  it('may be of IPv6 and single addresses', () => {
    const range = readRange('fd12::/16')
    expect(range && inRange('fd12:ffff::1', range)).toBe(true)
    expect(range && inRange('fd13::1', range)).toBe(false)
    const single = readRange('[::1]')
    expect(single && inRange('::1', single)).toBe(true)
  })
  it('are not made of anything else', () => {
    for (const text of ['example.org', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0/8', '::/129', '/8', '10.0.0.0/-1'])
      expect(readRange(text)).toBeUndefined()
  })
})
