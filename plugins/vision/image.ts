import { mediaTypeOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { imageTypes } from 'svc/providers'

/** Detects the type of an image from its bytes, not from its name. Throws `invalid_request` for anything else. */
export async function detectImageType(name: string, bytes: Uint8Array): Promise<string> {
  const type = await mediaTypeOf(bytes)
  if (imageTypes.has(type)) return type
  throw new Refusal('invalid_request', `"${name}" is no PNG, JPEG, GIF or WebP image`)
}
