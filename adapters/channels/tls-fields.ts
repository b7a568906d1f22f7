import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'
import type { TlsOptions } from 'svc/sdk'

/** Fields of adapters that encrypt their connections themselves. */
export const tlsFields = {
  ca: v.optional(
    v.pipe(
      v.string(),
      v.includes('-----BEGIN CERTIFICATE-----', 'a certificate in PEM format'),
      v.description('Certificates (PEM) that are trusted besides the usual ones.'),
    ),
  ),
  verify_certificate: fileOnly(
    'without it, whoever is between both sides can read and change everything',
    fields.flag('Whether the certificate of the server must be valid.', {}, true),
  ),
}

export function toTlsOptions(config: {
  readonly ca?: string | undefined
  readonly verify_certificate: boolean
}): TlsOptions {
  return { rejectUnauthorized: config.verify_certificate, ...(config.ca !== undefined && { ca: config.ca }) }
}
