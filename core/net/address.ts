import { isIPv4, isIPv6 } from 'node:net'

/**
 * What an address is to an outgoing request: `loopback` and `private` may belong to the operator's own services,
 * `reserved` is nothing a request should ever go to by accident, `metadata` hands out a cloud machine's credentials and
 * is never permitted.
 */
export type AddressKind = 'public' | 'loopback' | 'private' | 'reserved' | 'metadata'

interface Block {
  readonly first: bigint
  readonly bits: number
  readonly kind: AddressKind
}
const block = (cidr: string, width: 32 | 128, kind: AddressKind): Block => {
  const [address = '', bits] = cidr.split('/')
  return { first: value(address), bits: bits === undefined ? width : Number(bits), kind }
}

/** Checked in order: the metadata addresses lie in blocks that are less strictly forbidden. */
const V4: readonly Block[] = [
  ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '100.100.100.200', '192.0.0.192', '168.63.129.16'].map(
    (cidr) => block(cidr, 32, 'metadata'),
  ),
  block('127.0.0.0/8', 32, 'loopback'),
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'].map((cidr) => block(cidr, 32, 'private')),
  ...[
    '0.0.0.0/8',
    '169.254.0.0/16',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4',
  ].map((cidr) => block(cidr, 32, 'reserved')),
]
const V6: readonly Block[] = [
  ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'].map((cidr) => block(cidr, 128, 'metadata')),
  block('::1', 128, 'loopback'),
  block('fc00::/7', 128, 'private'),
  ...['::', 'fe80::/10', 'fec0::/10', 'ff00::/8', '2001:db8::/32', '3fff::/20', '100::/64', '2001::/23'].map((cidr) =>
    block(cidr, 128, 'reserved'),
  ),
]
/** Where an IPv6 address carries an IPv4 one: the prefix and how many bits the IPv4 address is shifted to the left. */
const WRAPPED: readonly { readonly first: bigint; readonly bits: number; readonly at: readonly number[] }[] = [
  { first: value('::ffff:0:0'), bits: 96, at: [0] },
  { first: value('::ffff:0:0:0'), bits: 96, at: [0] },
  { first: value('::'), bits: 96, at: [0] },
  { first: value('64:ff9b::'), bits: 96, at: [0] },
  { first: value('64:ff9b:1::'), bits: 48, at: [0] },
  { first: value('2002::'), bits: 16, at: [80] },
]

/** The kind of a numeric address, of IPv4 addresses inside IPv6 ones too. Anything that is no address is `reserved`. */
export function classify(address: string): AddressKind {
  if (isIPv4(address)) return classify4(value(address))
  // A zone names an interface of this machine.
  if (!isIPv6(address) || address.includes('%')) return 'reserved'
  return classify6(value(address))
}

function classify4(number: bigint): AddressKind {
  return V4.find((entry) => within(number, entry, 32))?.kind ?? 'public'
}

function classify6(number: bigint): AddressKind {
  const named = V6.slice(0, 5).find((entry) => within(number, entry, 128))
  if (named) return named.kind
  for (const { first, bits, at } of WRAPPED) {
    if (!within(number, { first, bits }, 128)) continue
    // The local NAT64 prefix may be divided in several ways: each reading must be harmless.
    const readings =
      bits === 48 ? [number & MASK, split48(number)] : at.map((shift) => (number >> BigInt(shift)) & MASK)
    return worst(readings.map(classify4))
  }
  // Teredo carries its server in the open and its client inverted.
  if (number >> 96n === 0x20010000n) return worst([classify4((number >> 64n) & MASK), classify4(~number & MASK)])
  // ISATAP puts an IPv4 address behind a fixed mark in the interface part.
  const mark = (number >> 32n) & MASK
  if (mark === 0x00005efen || mark === 0x02005efen) {
    const inner = classify4(number & MASK)
    if (inner !== 'public') return inner
  }
  if (V6.some((entry) => within(number, entry, 128))) return 'reserved'
  // Only 2000::/3 is handed out for use between networks.
  return number >> 125n === 1n ? 'public' : 'reserved'
}

const MASK = 0xffff_ffffn
/** RFC 6052 for a prefix of 48 bits: 16 bits, eight zero bits, 16 bits. */
const split48 = (number: bigint): bigint => (((number >> 64n) & 0xffffn) << 16n) | ((number >> 40n) & 0xffffn)
const ORDER: readonly AddressKind[] = ['public', 'loopback', 'private', 'reserved', 'metadata']
const worst = (kinds: readonly AddressKind[]): AddressKind =>
  kinds.reduce((one, other) => (ORDER.indexOf(other) > ORDER.indexOf(one) ? other : one), 'public')

function within(
  number: bigint,
  { first, bits }: { readonly first: bigint; readonly bits: number },
  width: 32 | 128,
): boolean {
  const shift = BigInt(width - bits)
  return number >> shift === first >> shift
}

/** An address as a number. Only called with valid addresses. */
function value(address: string): bigint {
  if (isIPv4(address)) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
  let text = address
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address)
  if (dotted) {
    const low = value(dotted[2] ?? '')
    text = `${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`
  }
  const [head = '', tail] = text.split('::')
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'))
  const left = groups(head)
  const right = tail === undefined ? [] : groups(tail)
  const all = [...left, ...Array<string>(tail === undefined ? 0 : 8 - left.length - right.length).fill('0'), ...right]
  return all.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n)
}

/** A range of addresses such as `10.0.0.0/8`, or a single one. */
export interface Range {
  readonly first: bigint
  readonly bits: number
  readonly width: 32 | 128
}

/** `undefined` when the text is no address and no CIDR. */
export function readRange(text: string): Range | undefined {
  const [address = '', bits, more] = text.replace(/^\[(.*)\]$/, '$1').split('/')
  const width = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : undefined
  if (width === undefined || more !== undefined) return undefined
  if (bits !== undefined && (!/^\d{1,3}$/.test(bits) || Number(bits) > width)) return undefined
  return { first: value(address), bits: bits === undefined ? width : Number(bits), width }
}

/** Whether an address lies in a range. An IPv4 address written as `::ffff:a.b.c.d` is that IPv4 address. */
export function inRange(address: string, range: Range): boolean {
  if (!isIPv4(address) && !isIPv6(address)) return false
  let number = value(address.replace(/%.*$/, ''))
  let width: 32 | 128 = isIPv4(address) ? 32 : 128
  if (width === 128 && number >> 32n === 0xffffn) {
    number &= MASK
    width = 32
  }
  return width === range.width && within(number, range, width)
}
