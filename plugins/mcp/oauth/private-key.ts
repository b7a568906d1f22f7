import { createPrivateKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { AddClientAuthentication } from '@modelcontextprotocol/client'
import { Refusal } from 'svc/sdk'

const CURVES: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** Authenticates a client with a signed JWT (`private_key_jwt`, RFC 7523). */
export async function signWith(clientId: string, pem: string): Promise<AddClientAuthentication> {
  const { key, alg } = readSigningKey(pem)
  const { createPrivateKeyJwtAuth } = await import('@modelcontextprotocol/client')
  const privateKey = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  return createPrivateKeyJwtAuth({ issuer: clientId, subject: clientId, privateKey, alg })
}

/** Throws for a key that cannot sign. */
export function readSigningKey(pem: string): { readonly key: KeyObject; readonly alg: string } {
  const key = readKey(pem)
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  const alg = type === 'rsa' ? 'RS256' : CURVES[details?.namedCurve ?? '']
  if (alg === undefined) throw new Refusal('invalid_request', 'oauth.private_key: an RSA key, or one on a NIST curve')
  return { key, alg }
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    // What was wrong could show a part of it.
    throw new Refusal('invalid_request', 'oauth.private_key: not a private key in PEM format, or one with a passphrase')
  }
}
