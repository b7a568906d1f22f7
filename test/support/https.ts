import { once } from 'node:events'
import { createServer } from 'node:https'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { generate } from 'selfsigned'

/** A server that speaks HTTPS on this machine, with a certificate that this process trusts until it ends. */
export async function startHttps(listener: RequestListener): Promise<AsyncDisposable & { readonly url: string }> {
  const extensions = [
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
  ]
  const { private: key, cert } = generate([{ name: 'commonName', value: '127.0.0.1' }], {
    algorithm: 'sha256',
    days: 1,
    keySize: 2048,
    extensions,
  })
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, cert])
  const server = createServer({ key, cert }, listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      setDefaultCACertificates(trusted)
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
