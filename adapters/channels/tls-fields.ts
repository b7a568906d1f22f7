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
  /** Of the bot itself, with its key. */
  readonly certificate?: string | undefined
  readonly certificate_key?: string | undefined
  readonly verify_certificate: boolean
}): TlsOptions {
  const { ca, certificate, certificate_key: key, verify_certificate: rejectUnauthorized } = config
  const own = certificate !== undefined && key !== undefined && { cert: withLines(certificate), key: withLines(key) }
  return { rejectUnauthorized, ...(ca !== undefined && { ca: withLines(ca) }), ...own }
}

const PEM = /(-----BEGIN [A-Z ]+-----)([A-Za-z\d+/=\s]+)(-----END [A-Z ]+-----)/g
const LINE = /.{1,64}/g

/** A field of a form takes line breaks away, without which no certificate can be read. */
function withLines(pem: string): string {
  return pem.replaceAll(PEM, (_, begin: string, body: string, end: string) =>
    [begin, ...(body.replaceAll(/\s/g, '').match(LINE) ?? []), end, ''].join('\n'),
  )
}
