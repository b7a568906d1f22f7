import { generate } from 'selfsigned'

let made: { readonly key: string; readonly cert: string } | undefined

/** A certificate for this machine, the same for a whole file of tests. */
export function localCertificate(): { readonly key: string; readonly cert: string } {
  if (made) return made
  const { private: key, cert } = generate([{ name: 'commonName', value: 'localhost' }], {
    algorithm: 'sha256',
    days: 1,
    keySize: 2048,
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  })
  return (made = { key, cert })
}
