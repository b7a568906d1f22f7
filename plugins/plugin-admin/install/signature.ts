import { verifyEd25519 } from 'svc/internal'
import { Refusal } from 'svc/sdk'

/** The trusted key that signed these bytes. Throws `forbidden` when none did. */
export async function verifySignature(
  bytes: Uint8Array,
  signature: string,
  trustedKeys: readonly string[],
): Promise<string> {
  const signer = await verifyEd25519(bytes, signature, trustedKeys)
  if (signer !== undefined) return signer
  throw new Refusal(
    'forbidden',
    'The signature is by none of plugins.plugin-admin.trusted_keys, or the archive was changed after it was signed',
  )
}
