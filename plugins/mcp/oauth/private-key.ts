import { createPrivateKey } from 'node:crypto'
import type { AddClientAuthentication } from '@modelcontextprotocol/client'
import { Refusal } from 'svc/sdk'
import { algorithmOf, SIGNING_KEY } from '../config.ts'

/** Authenticates a client with a signed JWT (`private_key_jwt`, RFC 7523). */
export async function signWith(clientId: string, pem: string): Promise<AddClientAuthentication> {
  const alg = algorithmOf(pem)
  if (alg === undefined) throw new Refusal('invalid_request', `oauth.private_key: ${SIGNING_KEY}`)
  const { createPrivateKeyJwtAuth } = await import('@modelcontextprotocol/client')
  const privateKey = createPrivateKey(pem).export({ type: 'pkcs8', format: 'pem' }).toString()
  return createPrivateKeyJwtAuth({ issuer: clientId, subject: clientId, privateKey, alg })
}
