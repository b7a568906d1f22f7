import { mediaTypeOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { pictureTypes } from 'svc/providers'

/** What kind of picture it is, by its bytes and not by its name. Throws `invalid_request` for anything else. */
export async function mimeOf(name: string, bytes: Uint8Array): Promise<string> {
  const found = await mediaTypeOf(bytes)
  if (pictureTypes.has(found)) return found
  throw new Refusal('invalid_request', `"${name}" is no PNG, JPEG, GIF or WebP picture`)
}
