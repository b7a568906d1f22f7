import { classify, testOutbound } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Finding } from '../contract.ts'
import type { ProbeTools } from '../probes.ts'

/** Addresses that a request on behalf of somebody else must not reach (security facts 1.11). */
const forbidden: readonly string[] = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.1.1.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  '2001:db8::1',
  '100::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:10.0.0.1',
  '::127.0.0.1',
  '::10.0.0.1',
  '64:ff9b::127.0.0.1',
  '64:ff9b::a00:1',
  '64:ff9b:1::7f00:1',
  '2002:7f00:1::',
  '2002:a00:1::1',
  '2001:0:7f00:1::',
  'fe80::1%eth0',
  'not an address',
  '',
]
const metadata: readonly string[] = [
  '169.254.169.254',
  'fd00:ec2::254',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  '::ffff:169.254.169.254',
  '64:ff9b::a9fe:a9fe',
]
const open: readonly string[] = [
  '1.1.1.1',
  '8.8.8.8',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '192.167.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001::1',
  '::ffff:8.8.8.8',
]
/** Never permitted, whatever the allow list holds, so the installed client can be tested without sending a request. */
const never: readonly string[] = [
  'http://169.254.169.254/',
  'http://[::ffff:169.254.169.254]/',
  'http://2852039166/',
  'http://0xa9fea9fe/',
  'http://metadata.google.internal./',
  'http://metadata.google.internal/',
]

export async function probe({ ownPort, fetch }: ProbeTools, signal: AbortSignal): Promise<Finding> {
  const cases = [
    ...forbidden.map((address) => ({
      name: `${address || 'an empty text'} is not public`,
      passed: !['public', 'metadata'].includes(classify(address)),
    })),
    ...metadata.map((address) => ({
      name: `${address} is a metadata service`,
      passed: classify(address) === 'metadata',
    })),
    ...open.map((address) => ({ name: `${address} is public`, passed: classify(address) === 'public' })),
    ...(await testOutbound(signal)),
  ]
  for (const url of never)
    cases.push({
      name: `the installed client refuses ${url}`,
      passed: await isRefused(() => fetch(url, { signal, totalTimeoutMs: 500 })),
    })
  // Its own port, which no allow list opens either.
  const host = ownPort.host()
  if (host !== undefined)
    for (const url of [`http://${host}/`, `http://[::ffff:127.0.0.1]:${host.replace(/^.*:/, '')}/`])
      cases.push({
        name: "the installed client refuses the daemon's own port",
        passed: await isRefused(() => fetch(url, { signal, totalTimeoutMs: 500 })),
      })
  const addresses = forbidden.length + metadata.length + open.length
  return { cases, evidence: `${addresses} addresses, a listener that counts, the installed client` }
}

async function isRefused(attempt: () => Promise<unknown>): Promise<boolean> {
  try {
    await attempt()
    return false
  } catch (error) {
    return error instanceof Refusal && error.code === 'forbidden'
  }
}
